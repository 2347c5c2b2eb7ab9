-- The claim's indexes of the version before: its workers did not know gates. The new ones take their names.
drop index tenure.jobs_pending;
drop index tenure.jobs_suspect;
alter index tenure.jobs_open rename to jobs_pending;
alter index tenure.jobs_open_suspect rename to jobs_suspect;
