"""Chains, blockers, groups and workflows. The statements are in the store, their duty is the leader's resolver."""
