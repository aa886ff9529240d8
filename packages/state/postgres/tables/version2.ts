import { WINDOW_GRACE_MS } from '../../limits/window.ts'
import { countFunction } from './count.ts'

/** How long events are kept after a snapshot covers them, in seconds: replicas that are behind still read them. */
const COVERED_SECONDS = 60
/** Maximum number of rows of a kind deleted at once. */
const TIDY_BATCH = 10_000
/** Maximum number of holds that one sweep counts as spent: its locks last as long as the sweep. */
const SWEEP_BATCH = 500
/** How long a counter of a window without end is kept after its last use, in milliseconds: 90 days. */
const LIFE_AGE_MS = 90 * 24 * 3_600_000
/** How long an expired hold can still be settled, in milliseconds: a day. */
const EXPIRED_AGE_MS = 24 * 3_600_000
/** How long a released reference is kept, in seconds. Longer than any statement of a take can run: see `TAKE_DEADLINE_MS`. */
const CLOSED_SECONDS = 600
/** How long the database remembers an absent gateway, in days: one that returns later must adopt the database. */
const WITNESS_DAYS = 400

/** The second version: a lock per counter, one clock, tombstones of releases, and marks that reveal a database that went back in time. */
export function version2(s: string): string {
  return [replaced(s), origins(s), journals(s), counters(s), countFunction(s), gone(s), tidying(s)].join('\n')
}

/** Gateways of the first version can no longer count: two ways of locking side by side would count too little. */
function replaced(s: string): string {
  return `
DROP FUNCTION ${s}.count(text, bigint, jsonb);
DROP FUNCTION ${s}.take(text, bigint, jsonb);
DROP FUNCTION ${s}.extend(bigint, jsonb);
DROP FUNCTION ${s}.settle(bigint, jsonb);
DROP FUNCTION ${s}.add_held(jsonb, bigint);
DROP FUNCTION ${s}.spend_whole(${s}.hold, bigint);
DROP FUNCTION ${s}.sweep(text, bigint);
DROP FUNCTION ${s}.tidy(text, bigint);
DROP FUNCTION ${s}.append(text, text, text[], bigint, bigint, text);`
}

/**
 * Identity of the database. \`epoch\` grows when an operator adopts a copy; \`adopts\` lists the databases whose gateways may continue here.
 * \`lost\` is set by the first gateway that finds the database older than what it has seen. Each gateway increments its own \`beat\`.
 */
function origins(s: string): string {
  return `
CREATE TABLE ${s}.origin (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id text NOT NULL, epoch bigint NOT NULL, adopts text[] NOT NULL DEFAULT '{}', lost text
);
INSERT INTO ${s}.origin (id, epoch) VALUES (gen_random_uuid()::text, 1);
CREATE TABLE ${s}.witness (id text PRIMARY KEY, beat bigint NOT NULL, at timestamptz NOT NULL) WITH (fillfactor = 50);

CREATE FUNCTION ${s}.beat(p_witness text, OUT beat bigint, OUT at bigint) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ${s}.witness AS w (id, beat, at) VALUES (p_witness, 1, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET beat = w.beat + 1, at = EXCLUDED.at RETURNING w.beat INTO beat;
  at := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
END $$;

CREATE FUNCTION ${s}.adopt(p_origin text, p_epoch bigint) RETURNS bigint LANGUAGE sql AS $$
  UPDATE ${s}.origin o SET lost = NULL,
      epoch = greatest(o.epoch + 1, p_epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint),
      adopts = CASE WHEN p_origin = o.id OR p_origin = ANY (o.adopts) THEN o.adopts ELSE o.adopts || p_origin END
    RETURNING o.epoch
$$;`
}

/** Each event has a mark and the mark of the previous event: a replaced history does not continue the one that was read. */
function journals(s: string): string {
  return `
ALTER TABLE ${s}.journal ADD COLUMN mark text NOT NULL DEFAULT '';
ALTER TABLE ${s}.entry ADD COLUMN prev text NOT NULL DEFAULT '', ADD COLUMN mark text NOT NULL DEFAULT '';

CREATE FUNCTION ${s}.append(
  p_journal text, p_key text, p_events text[], p_only_if bigint, p_at bigint, p_attempt text,
  OUT head bigint, OUT first bigint, OUT version bigint, OUT prev text) LANGUAGE plpgsql AS $$
DECLARE before bigint; many bigint := cardinality(p_events);
BEGIN
  SELECT j.seq, j.mark INTO STRICT head, prev FROM ${s}.journal j WHERE j.name = p_journal FOR UPDATE;
  SELECT e.seq, e.version + many - 1, e.prev INTO first, version, prev FROM ${s}.entry e WHERE e.attempt = p_attempt;
  IF FOUND THEN RETURN; END IF;
  SELECT j.mark INTO prev FROM ${s}.journal j WHERE j.name = p_journal;
  SELECT coalesce(max(e.version), 0) INTO before
    FROM ${s}.entry e WHERE e.journal = p_journal AND e.key = p_key AND e.covered_at IS NULL;
  IF p_only_if <> before THEN RETURN; END IF;
  first := head + 1;
  version := before + many;
  INSERT INTO ${s}.entry (journal, seq, key, version, at, event, attempt, prev, mark)
    SELECT p_journal, head + n, p_key, before + n, p_at, event, CASE n WHEN 1 THEN p_attempt END,
        CASE n WHEN 1 THEN append.prev ELSE p_attempt || '.' || n - 1 END, p_attempt || '.' || n
      FROM unnest(p_events) WITH ORDINALITY AS given(event, n);
  head := head + many;
  UPDATE ${s}.journal j SET seq = head, mark = p_attempt || '.' || many WHERE j.name = p_journal;
  PERFORM pg_notify('plat_state', p_journal);
END $$;`
}

/** Counters and holds change with every call: pages keep room for the next version of a row, so that indexes do not change. */
function counters(s: string): string {
  return `
ALTER TABLE ${s}.counter SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE ${s}.hold SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE ${s}.hold ADD COLUMN ref text NOT NULL DEFAULT '';
CREATE TABLE ${s}.closed (ref text PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX closed_at ON ${s}.closed (at);`
}

const NOW = 'bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/**
 * Expired holds, and those of lost replicas, count as spent in full. Never waits for a lock, and so cannot deadlock: a hold whose counters are
 * locked is left for the next sweep.
 */
function gone(s: string): string {
  return `
CREATE FUNCTION ${s}.spend_gone(p_of_dead boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE h ${s}.hold; item jsonb; locked bigint; t ${NOW};
BEGIN
  FOR h IN SELECT * FROM ${s}.hold WHERE NOT expired AND CASE WHEN p_of_dead
      THEN owner NOT IN (SELECT r.id FROM ${s}.replica r WHERE r.until > clock_timestamp()) ELSE expires_at <= t END
      LIMIT ${SWEEP_BATCH} FOR UPDATE SKIP LOCKED LOOP
    SELECT count(*) INTO locked FROM (
      SELECT 1 FROM jsonb_array_elements(h.items) AS one
        JOIN ${s}.counter c ON c.key = one->>'k' AND c.win = one->>'w' FOR UPDATE OF c SKIP LOCKED) AS found;
    CONTINUE WHEN locked < jsonb_array_length(h.items);
    FOR item IN SELECT * FROM jsonb_array_elements(h.items) LOOP
      PERFORM ${s}.move(item, (item->>'a')::bigint, -(item->>'a')::bigint, t);
    END LOOP;
    UPDATE ${s}.hold SET expired = true WHERE id = h.id;
  END LOOP;
END $$;

CREATE FUNCTION ${s}.used(p_key text, p_win text, OUT spent bigint, OUT held bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ${s}.spend_gone(false);
  SELECT c.spent, c.held INTO spent, held FROM ${s}.counter c WHERE c.key = p_key AND c.win = p_win;
END $$;`
}

/** For the leader only. */
function tidying(s: string): string {
  const begin = `
  PERFORM 1 FROM ${s}.leader WHERE job = p_job AND epoch = p_epoch FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;`
  const some = (table: string, where: string) =>
    `DELETE FROM ${s}.${table} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM ${s}.${table} WHERE ${where} LIMIT ${TIDY_BATCH} FOR UPDATE SKIP LOCKED));`
  return `
CREATE FUNCTION ${s}.sweep(p_job text, p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN${begin}
  PERFORM ${s}.spend_gone(true);
  PERFORM ${s}.spend_gone(false);
  RETURN true;
END $$;

CREATE FUNCTION ${s}.tidy(p_job text, p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE t ${NOW};
BEGIN${begin}
  ${some('replica', "until < clock_timestamp() - interval '1 day'")}
  ${some('witness', `at < clock_timestamp() - interval '${WITNESS_DAYS} days'`)}
  ${some('hold', `expired AND expires_at < t - ${EXPIRED_AGE_MS}`)}
  ${some('closed', `at < clock_timestamp() - interval '${CLOSED_SECONDS} seconds'`)}
  ${some('counter', `held = 0 AND ends_at <= t - ${WINDOW_GRACE_MS}`)}
  ${some('counter', `held = 0 AND ends_at IS NULL AND used_at < t - CASE spent WHEN 0 THEN ${WINDOW_GRACE_MS} ELSE ${LIFE_AGE_MS} END`)}
  ${some('entry', `covered_at < clock_timestamp() - interval '${COVERED_SECONDS} seconds'`)}
  RETURN true;
END $$;`
}
