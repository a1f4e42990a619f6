-- A role for workers, who run scripts: it takes and ends jobs, and writes neither keys, sessions nor the audit.
-- In the service's database, after the service's first start, which makes the tables; again does no harm:
--
--     psql "$ADMIN_URL" -v ON_ERROR_STOP=1 -v password="$WORKER_PASSWORD" -f deploy/worker-role.sql
SELECT format('CREATE ROLE freezeframe_worker LOGIN PASSWORD %L', :'password')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'freezeframe_worker')
\gexec
GRANT USAGE ON SCHEMA public TO freezeframe_worker;
GRANT SELECT ON control_version TO freezeframe_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs, lanes, schedules TO freezeframe_worker;
GRANT USAGE ON SEQUENCE jobs_sequence_seq, schedules_sequence_seq TO freezeframe_worker;
