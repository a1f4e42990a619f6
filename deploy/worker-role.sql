-- A role for workers, who run scripts: it takes and ends jobs, and writes neither keys, sessions nor the audit.
-- In the service's database, after the first command of the service's role, which makes the tables. Again after
-- each upgrade. The password is that of the variable WORKER_PASSWORD; without it the role keeps the one it has.
--
--     WORKER_PASSWORD=... psql --dbname=freezeframe --set=ON_ERROR_STOP=1 --file=deploy/worker-role.sql
SELECT 'CREATE ROLE freezeframe_worker LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'freezeframe_worker')
\gexec
\getenv password WORKER_PASSWORD
\if :{?password}
ALTER ROLE freezeframe_worker PASSWORD :'password';
\endif
GRANT USAGE ON SCHEMA public TO freezeframe_worker;
GRANT SELECT ON control_version TO freezeframe_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs, lanes, schedules TO freezeframe_worker;
GRANT USAGE ON SEQUENCE jobs_sequence_seq, schedules_sequence_seq TO freezeframe_worker;
