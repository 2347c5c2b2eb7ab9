"""Who may do what: principals, tokens, sessions, access to single jobs, origins, hosts, rates, redaction and the audit log."""
