"""Faults to plant in the product's statements: a harness that does not detect them would not detect real ones either."""

from __future__ import annotations

from dataclasses import dataclass

Edit = tuple[str, str]

TERM = "and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()"


@dataclass(frozen=True)
class Fault:
    """Other text in a statement (`jobs/claim_jobs`) or in a function of the schema (`take_keys`)."""

    what: str
    where: str
    edits: tuple[Edit, ...]
    start_state: str
    scripts: tuple[str, ...]

    @property
    def in_function(self) -> bool:
        return "/" not in self.where


def without(*texts: str) -> tuple[Edit, ...]:
    return tuple((text, "") for text in texts)


def unlocked(condition: str) -> tuple[Edit, ...]:
    """Finds rows without a lock and changes them by id, even if they have changed. `condition`: how they are found again."""
    by_id = (("j.ctid as tid", "j.id as tid"), (f"j.ctid = {condition}", f"j.id = {condition}"))
    return (*without("for no key update skip locked"), *by_id)


FAULTS = [
    Fault(
        "settling does not check the claim",
        "jobs/finish_jobs",
        without("and h.id = j.claim_id and j.claim_id = (:outcomes::jsonb -> j.id::text ->> 0)::uuid"),
        "late",
        ("C1 settles", "H1 expires jobs", "W2 claims"),
    ),
    Fault(
        "moving does not check the claim",
        "jobs/move_jobs",
        without("and j.claim_id = o.claim_id", "and j.claim_id = f.claim_id"),
        "passed_on",
        ("C1 fails", "C2 settles"),
    ),
    Fault(
        "claiming takes rows without a lock",
        "jobs/claim_jobs",
        unlocked("any (array(select p.tid from picked p))"),
        "waiting",
        ("W1 claims", "W2 claims"),
    ),
    Fault(
        "claiming waits for rows that others hold",
        "jobs/claim_jobs",
        (("for no key update skip locked", "for no key update"),),
        "waiting",
        ("W1 claims", "W2 claims"),
    ),
    Fault(
        "claiming does not lock its worker's row",
        "jobs/claim_jobs",
        without("for share"),
        "waiting",
        ("W1 claims", "S1 reaps W1"),
    ),
    Fault(
        "claiming does not check whether its worker is condemned",
        "jobs/claim_jobs",
        without("and w.died_at is null"),
        "waiting",
        ("W1 claims", "S1 reaps W1"),
    ),
    Fault(
        "jobs are requeued whether or not their worker is condemned",
        "jobs/return_jobs",
        without("w.died_at is not null and"),
        "held",
        ("C1 reports progress", "jobs of dead workers are requeued"),
    ),
    Fault(
        "a worker's row is removed though one of its jobs is locked",
        "jobs/return_jobs",
        (
            (
                "select from tenure.claims r where r.worker_id = d.id and r.id not in",
                "select from tenure.claims r where false and r.id in",
            ),
        ),
        "condemned",
        ("C1 reports progress", "jobs of W1 are requeued"),
    ),
    Fault(
        "the row of a claim is removed though one of its jobs is locked",
        "jobs/return_jobs",
        (("where j.id not in (select n.id from released n))", "where false)"),),
        "condemned",
        ("C1 reports progress", "jobs of W1 are requeued"),
    ),
    Fault(
        "the row of a claim is removed though a job is held under it",
        "claims/forget_claims",
        (("and not exists (", "and (true or not exists ("), ("limit 1) j)\n", "limit 1) j))\n")),
        "held",
        ("W1 forgets claims", "C1 reports progress"),
    ),
    Fault(
        "claiming does not write the row of the claim",
        "jobs/claim_jobs",
        (("having count(*) > 0", "having false"),),
        "waiting",
        ("W1 claims", "W2 claims"),
    ),
    Fault(
        "claiming under a limit does not write the row of the claim",
        "limits/claim_limited",
        (("having count(*) > 0", "having false"),),
        "limited",
        ("W1 claims limited", "W2 claims limited"),
    ),
    Fault(
        "claiming under a limit does not count the job",
        "limits/claim_limited",
        without(", held_group = j.limit_group"),
        "limited",
        ("W1 claims limited", "W2 claims limited"),
    ),
    Fault(
        "a job that was moved still counts towards its limit",
        "jobs/move_jobs",
        without(" held_group = null,"),
        "limited_held",
        ("C1 requeues", "W2 claims limited"),
    ),
    Fault(
        "a job that was requeued still counts towards its limit",
        "jobs/return_jobs",
        without(" held_group = null,"),
        "limited_held",
        ("S1 reaps W1", "W2 claims limited"),
    ),
    Fault(
        "a job whose claim was disowned still counts towards its limit",
        "claims/disown_jobs",
        without(" held_group = null,"),
        "limited_held",
        ("W1 disowns C1", "W2 claims limited"),
    ),
    Fault(
        "settling does not check that the claim has a row",
        "jobs/finish_jobs",
        (
            (
                "using held h\n",
                "using (select x.id, h.worker_id, h.at from unnest(:claims::uuid[]) as x(id) left join held h using (id)) h\n",
            ),
        ),
        "unclaimed",
        ("C1 settles", "H1 reaps unknown workers"),
    ),
    Fault(
        "jobs whose claim has no row are not requeued",
        "workers/condemn_unknown",
        (("where e.claim_id is not null and", "where false and"),),
        "unclaimed",
        ("H1 reaps unknown workers", "C1 reports progress"),
    ),
    Fault(
        "workers without a row are not condemned",
        "workers/condemn_unknown",
        (("h.id is not null and exists (select from leader)", "false"),),
        "unknown",
        ("H1 reaps unknown workers", "C1 reports progress"),
    ),
    Fault(
        "claiming under a limit does not take its lock",
        "limits/lock_limits",
        without("for no key update skip locked"),
        "limited",
        ("W1 claims limited", "W2 claims limited"),
    ),
    Fault(
        "claiming under a limit waits for its lock",
        "limits/lock_limits",
        (("for no key update skip locked", "for no key update"),),
        "limited",
        ("W1 claims limited", "W2 claims limited"),
    ),
    Fault(
        "claiming under a limit does not lock its worker's row",
        "limits/claim_limited",
        without("\n       for share"),
        "limited",
        ("W1 claims limited", "S1 reaps W1"),
    ),
    Fault(
        "a worker that is being renewed is condemned",
        "workers/condemn_workers",
        without("for no key update skip locked"),
        "overdue",
        ("S1 renews W1", "H1 reaps"),
    ),
    Fault(
        "a condemned worker is renewed",
        "workers/renew_workers",
        without("and w.died_at is null"),
        "held",
        ("S1 renews W1", "S1 condemns W1"),
    ),
    Fault(
        "promoting does not check the term",
        "jobs/promote_jobs",
        without(TERM),
        "short_term",
        ("H1 promotes", "time passes, H2 leads"),
    ),
    Fault(
        "promoting checks the term, but does not lock it",
        "jobs/promote_jobs",
        without("\n       for key share"),
        "short_term",
        ("H1 promotes", "time passes, H2 leads"),
    ),
    Fault(
        "promoting takes rows without a lock",
        "jobs/promote_jobs",
        unlocked("p.tid"),
        "due",
        ("H1 promotes", "retry"),
    ),
    Fault(
        "expiring jobs does not lock the term",
        "jobs/expire_jobs",
        without("for key share"),
        "late_short_term",
        ("H1 expires jobs", "time passes, H2 expires jobs"),
    ),
    Fault(
        "a job that is sending a heartbeat is expired",
        "jobs/expire_jobs",
        unlocked("l.tid"),
        "late",
        ("C1 sends heartbeat", "H1 expires jobs"),
    ),
    Fault(
        "two leaders are elected",
        "leases/acquire_leases",
        (
            (":forced::boolean or not exists (", "true or not exists ("),
            (
                (
                    "where l.expires_at <= clock_timestamp() or l.heartbeat_at > clock_timestamp() + interval '10 s'\n"
                    "        or l.holder = excluded.holder or :forced::boolean"
                ),
                "",
            ),
        ),
        "no_leader",
        ("H2 asks to lead", "H3 asks to lead"),
    ),
    Fault(
        "releasing a lease does not check the term",
        "leases/release_leases",
        (
            ("on l.name = h.name and l.term = h.term\n", "on l.name = h.name\n"),
            ("     where l.holder = :holder::uuid and l.expires_at", "     where l.expires_at"),
            ("where l.name = o.name and l.holder = :holder::uuid and l.term = o.term and", "where l.name = o.name and"),
        ),
        "no_leader",
        ("H1 resigns", "H2 asks to lead"),
    ),
    Fault(
        "a stale run reports progress",
        "jobs/write_updates",
        without("and j.claim_id = o.claim_id"),
        "passed_on",
        ("C1 reports progress", "C2 reports progress"),
    ),
    Fault(
        "jobs that other claims took are requeued, too",
        "claims/disown_jobs",
        without("and j.claim_id = o.claim_id"),
        "held",
        ("W1 disowns C1", "C1 requeues", "W1 claims"),
    ),
    Fault(
        "canceling records that the run ended the job",
        "jobs/cancel_jobs",
        (
            ("history (id, worker_id", "history (id, claim_id, worker_id"),
            ("select id, r.worker_id", "select id, claim_id, r.worker_id"),
        ),
        "held",
        ("C1 settles and checks", "cancel"),
    ),
    Fault(
        "canceling waits for rows that others hold",
        "jobs/cancel_jobs",
        (("for update skip locked", "for update"),),
        "held",
        ("C1 settles", "cancel"),
    ),
    Fault(
        "replaying does not check the state",
        "jobs/replay_jobs",
        without("and coalesce(j.state, '') = 'dead_letter'", "f.state = 'dead_letter' and"),
        "dead",
        ("replay", "retry"),
    ),
    Fault(
        "a dead letter is replayed without its key",
        "jobs/replay_jobs",
        without("and (f.key is null or f.id in (select k.id from taken_keys k where k.existing_id is null))"),
        "keyed_dead",
        ("replay", "B with k"),
    ),
    Fault(
        "retrying checks the state before it locks the row",
        "jobs/retry_job",
        (("       for no key update skip locked", ""), ("where j.ctid = p.tid and j.id = p.id", "where j.id = p.id")),
        "due",
        ("H1 promotes", "retry", "W2 claims"),
    ),
    Fault(
        "a running job is deleted without force",
        "jobs/delete_jobs",
        without(
            "where j.claim_id is not null",
            "and (:force::boolean or j.claim_id is null)",
            "where :force::boolean or not exists (select from running)",
            "and (:force::boolean or not exists (select from running))",
        ),
        "held",
        ("C1 reports progress", "delete"),
    ),
    Fault(
        "cleaning waits for a key that is being taken over",
        "cleaning/clean_keys",
        without("for update skip locked"),
        "keyed_done",
        ("H1 cleans keys", "B with k"),
    ),
    Fault(
        "a key is looked for before it is taken",
        "take_keys",
        (
            (
                "where g.key is not null\n         order by g.kind, g.key, g.ordinal\n        on conflict (kind, key) do nothing",
                "where g.key is not null and not exists (select from tenure.keys k where k.kind = g.kind and k.key = g.key)",
            ),
        ),
        "empty",
        ("A with k", "B with k"),
    ),
    Fault(
        "a key is taken over though its job is live",
        "take_keys",
        without("and not exists (select from tenure.jobs j where j.id = k.job_id and j.state <> 'dead_letter')"),
        "keyed_held",
        ("C1 settles", "B with k"),
    ),
    Fault(
        "the parent is not locked while its children are enqueued",
        "check_parents",
        (("for share;", ";"),),
        "held",
        ("C1 enqueues K", "cancel"),
    ),
    Fault(
        "enqueuing again does not check history",
        "enqueue_again",
        (
            ("and (select h.id from tenure.history h where h.id = (e.job ->> 'id')::uuid limit 1) is null", ""),
            ("delete from tenure.jobs j\n     where", "delete from tenure.jobs j\n     where false and"),
        ),
        "empty",
        ("A", "A again", "W2 works on A"),
    ),
    Fault(
        "enqueuing again does not wait for the first call",
        "enqueue_again",
        (("exception when unique_violation then", "exception when division_by_zero then"),),
        "empty",
        ("A", "A again"),
    ),
]
