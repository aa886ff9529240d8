/** How long an entry that is over is kept, in milliseconds: a gateway whose estimate of the database's clock is behind must still find it. */
const GRACE_MS = 10 * 60_000
/** Maximum number of rows of a kind that one call deletes. */
const TIDY_BATCH = 10_000

/**
 * The sixth version: keys that may be used once, and leases. Both end by the clock of the server. `by` identifies the statement that inserted a key, so that a
 * repeated statement finds its own row. Gateways of version 5 continue to work beside it.
 */
export function version6(s: string): string {
  const some = (table: string, where: string) =>
    `DELETE FROM ${s}.${table} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${s}.${table} WHERE ${where} LIMIT ${TIDY_BATCH} FOR UPDATE SKIP LOCKED));`
  return `
CREATE TABLE ${s}.once (
  kind text NOT NULL, key bytea NOT NULL, value text NOT NULL, until bigint NOT NULL, by text NOT NULL,
  PRIMARY KEY (kind, key)
);
ALTER TABLE ${s}.once SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX once_until ON ${s}.once (until);
CREATE TABLE ${s}.lease (name text PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL);

CREATE FUNCTION ${s}.tidy_claims(p_job text, p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE t bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
  PERFORM 1 FROM ${s}.leader WHERE job = p_job AND epoch = p_epoch FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  ${some('once', `until < t - ${GRACE_MS}`)}
  ${some('lease', 'until < clock_timestamp()')}
  RETURN true;
END $$;`
}
