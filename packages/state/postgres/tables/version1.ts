/** How long events are kept after a snapshot replaced them, in seconds: replicas that are behind still have to read them. */
const COVERED_SECONDS = 60
/** Maximum number of rows of a kind that one sweep deletes. */
const SWEEP_BATCH = 10_000
/** How long a counter without a window end is kept after its last use, in milliseconds: 90 days. */
const LIFE_AGE_MS = 90 * 24 * 3_600_000
/** How long an expired hold can still be settled, in milliseconds: a day. */
const EXPIRED_AGE_MS = 24 * 3_600_000
/** Lock that serializes counting by replicas: an arbitrary constant. */
const COUNTING_LOCK = 0x706c6175

/** The first version of the gateway's schema; `s` is its quoted name. */
export function version1(s: string): string {
  return [journals(s), leaders(s), counters(s), taking(s), counting(s), sweeping(s)].join('\n')
}

/**
 * Events are numbered in commit order: an append locks the row of the journal until then. A snapshot has the number up to which it replaces events,
 * and parts from 1 on. `attempt` makes a repeated append happen once.
 */
function journals(s: string): string {
  return `
CREATE TABLE ${s}.journal (name text PRIMARY KEY, seq bigint NOT NULL DEFAULT 0, covered bigint NOT NULL DEFAULT 0);
CREATE TABLE ${s}.entry (
  journal text NOT NULL, seq bigint NOT NULL, part integer NOT NULL DEFAULT 0,
  key text NOT NULL COLLATE "C", version bigint NOT NULL, at bigint NOT NULL, event text NOT NULL,
  attempt text UNIQUE, covered_at timestamptz,
  PRIMARY KEY (journal, seq, part)
);
CREATE INDEX entry_key ON ${s}.entry (journal, key, version) WHERE covered_at IS NULL;
CREATE INDEX entry_covered ON ${s}.entry (covered_at) WHERE covered_at IS NOT NULL;
CREATE TABLE ${s}.secret (name text PRIMARY KEY, value text NOT NULL);

CREATE FUNCTION ${s}.append(
  p_journal text, p_key text, p_events text[], p_only_if bigint, p_at bigint, p_attempt text,
  OUT head bigint, OUT first bigint, OUT version bigint) LANGUAGE plpgsql AS $$
DECLARE before bigint; many bigint := cardinality(p_events);
BEGIN
  SELECT j.seq INTO STRICT head FROM ${s}.journal j WHERE j.name = p_journal FOR UPDATE;
  SELECT e.seq, e.version + many - 1 INTO first, version FROM ${s}.entry e WHERE e.attempt = p_attempt;
  IF FOUND THEN RETURN; END IF;
  SELECT coalesce(max(e.version), 0) INTO before
    FROM ${s}.entry e WHERE e.journal = p_journal AND e.key = p_key AND e.covered_at IS NULL;
  IF p_only_if <> before THEN RETURN; END IF;
  first := head + 1;
  version := before + many;
  INSERT INTO ${s}.entry (journal, seq, key, version, at, event, attempt)
    SELECT p_journal, head + n, p_key, before + n, p_at, event, CASE n WHEN 1 THEN p_attempt END
      FROM unnest(p_events) WITH ORDINALITY AS given(event, n);
  head := head + many;
  UPDATE ${s}.journal j SET seq = head WHERE j.name = p_journal;
  PERFORM pg_notify('plat_state', p_journal);
END $$;

CREATE FUNCTION ${s}.compact(
  p_journal text, p_up_to bigint, p_at bigint, p_keys text[], p_versions bigint[], p_events text[])
  RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE head bigint; done bigint;
BEGIN
  SELECT j.seq, j.covered INTO STRICT head, done FROM ${s}.journal j WHERE j.name = p_journal FOR UPDATE;
  IF p_up_to > head OR p_up_to <= done THEN RETURN head; END IF;
  UPDATE ${s}.entry e SET covered_at = now()
    WHERE e.journal = p_journal AND e.seq <= p_up_to AND e.part = 0 AND e.covered_at IS NULL;
  DELETE FROM ${s}.entry e WHERE e.journal = p_journal AND e.part > 0;
  INSERT INTO ${s}.entry (journal, seq, part, key, version, at, event)
    SELECT p_journal, p_up_to, n, key, version, p_at, event
      FROM unnest(p_keys, p_versions, p_events) WITH ORDINALITY AS given(key, version, event, n);
  UPDATE ${s}.journal j SET covered = p_up_to WHERE j.name = p_journal;
  RETURN head;
END $$;`
}

/** Leaders and live replicas: `until` is by the clock of the server. */
function leaders(s: string): string {
  return `
CREATE TABLE ${s}.leader (job text PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL, until timestamptz NOT NULL);
CREATE TABLE ${s}.replica (id text PRIMARY KEY, until timestamptz NOT NULL);`
}

/** Spent and held amounts of one key in one window, and the holds. Their items are \`[{k, w, a, c, e}]\`: key, window, amount, cap, end. */
function counters(s: string): string {
  return `
CREATE TABLE ${s}.counter (
  key text NOT NULL COLLATE "C", win text NOT NULL,
  spent bigint NOT NULL DEFAULT 0, held bigint NOT NULL DEFAULT 0, ends_at bigint, used_at bigint NOT NULL,
  PRIMARY KEY (key, win)
);
CREATE INDEX counter_end ON ${s}.counter (ends_at);
CREATE TABLE ${s}.hold (
  id text PRIMARY KEY, owner text NOT NULL, expires_at bigint NOT NULL, expired boolean NOT NULL DEFAULT false,
  grown integer NOT NULL DEFAULT 0, taken text NOT NULL, items jsonb NOT NULL
);
CREATE INDEX hold_expiry ON ${s}.hold (expires_at) WHERE NOT expired;

CREATE FUNCTION ${s}.move(item jsonb, p_spent bigint, p_held bigint, p_now bigint) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO ${s}.counter AS old (key, win, spent, held, ends_at, used_at)
    VALUES (item->>'k', item->>'w', greatest(0, p_spent), greatest(0, p_held), (item->>'e')::bigint, p_now)
    ON CONFLICT (key, win) DO UPDATE
      SET spent = greatest(0, old.spent + p_spent), held = greatest(0, old.held + p_held),
          used_at = greatest(old.used_at, p_now)
    RETURNING spent
$$;

CREATE FUNCTION ${s}.spend_whole(h ${s}.hold, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE item jsonb;
BEGIN
  FOR item IN SELECT * FROM jsonb_array_elements(h.items) LOOP
    PERFORM ${s}.move(item, (item->>'a')::bigint, -(item->>'a')::bigint, p_now);
  END LOOP;
  UPDATE ${s}.hold SET expired = true WHERE id = h.id;
END $$;`
}

/** One function per operation, under the lock: a refusal returns the index of the item and what is left. */
function taking(s: string): string {
  return `
CREATE FUNCTION ${s}.add_held(p_items jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE item jsonb; place bigint; room bigint;
BEGIN
  FOR item, place IN SELECT * FROM jsonb_array_elements(p_items) WITH ORDINALITY LOOP
    SELECT c.spent + c.held INTO room FROM ${s}.counter c WHERE c.key = item->>'k' AND c.win = item->>'w';
    room := (item->>'c')::bigint - coalesce(room, 0);
    IF (item->>'a')::bigint > room THEN
      RETURN jsonb_build_object('short', place - 1, 'left', greatest(0, room));
    END IF;
  END LOOP;
  FOR item IN SELECT * FROM jsonb_array_elements(p_items) LOOP
    PERFORM ${s}.move(item, 0, (item->>'a')::bigint, p_now);
  END LOOP;
  RETURN NULL;
END $$;

CREATE FUNCTION ${s}.take(p_owner text, p_now bigint, op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE known ${s}.hold; short jsonb;
BEGIN
  SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id';
  IF FOUND AND NOT known.expired THEN RETURN jsonb_build_object('same', known.taken = op->>'taken'); END IF;
  short := ${s}.add_held(op->'items', p_now);
  IF short IS NOT NULL THEN RETURN short; END IF;
  DELETE FROM ${s}.hold WHERE id = op->>'id';
  INSERT INTO ${s}.hold (id, owner, expires_at, taken, items)
    VALUES (op->>'id', p_owner, (op->>'until')::bigint, op->>'taken', op->'items');
  RETURN '{}';
END $$;

CREATE FUNCTION ${s}.extend(p_now bigint, op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE known ${s}.hold; short jsonb;
BEGIN
  SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id' AND NOT expired;
  IF NOT FOUND THEN RETURN '{"over": true}'; END IF;
  IF known.grown = (op->>'grown')::integer THEN RETURN '{}'; END IF;
  short := ${s}.add_held(op->'more', p_now);
  IF short IS NOT NULL THEN RETURN short; END IF;
  UPDATE ${s}.hold SET items = op->'items', grown = (op->>'grown')::integer WHERE id = known.id;
  RETURN '{}';
END $$;

CREATE FUNCTION ${s}.settle(p_now bigint, op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE known ${s}.hold; item jsonb; held bigint; actual bigint; spent bigint; told jsonb := '[]';
BEGIN
  DELETE FROM ${s}.hold WHERE id = op->>'id' RETURNING * INTO known;
  IF NOT FOUND THEN RETURN '{"spent": []}'; END IF;
  FOR item IN SELECT * FROM jsonb_array_elements(known.items) LOOP
    held := (item->>'a')::bigint;
    actual := coalesce((op->'spent'->>(item->>'k'))::bigint, held);
    IF known.expired THEN spent := ${s}.move(item, actual - held, 0, p_now);
    ELSE spent := ${s}.move(item, actual, -held, p_now);
    END IF;
    told := told || jsonb_build_array(spent);
  END LOOP;
  RETURN jsonb_build_object('spent', told);
END $$;`
}

/** Runs all operations of a batch in order, in one transaction. */
function counting(s: string): string {
  return `
CREATE FUNCTION ${s}.count(p_owner text, p_now bigint, p_ops jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE h ${s}.hold; op jsonb; answers jsonb := '[]'; answer jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(${COUNTING_LOCK}, hashtext('${s}'));
  FOR h IN SELECT * FROM ${s}.hold WHERE NOT expired AND expires_at <= p_now LOOP
    PERFORM ${s}.spend_whole(h, p_now);
  END LOOP;
  FOR op IN SELECT * FROM jsonb_array_elements(p_ops) LOOP
    answer := CASE op->>'do'
      WHEN 'take' THEN ${s}.take(p_owner, p_now, op)
      WHEN 'extend' THEN ${s}.extend(p_now, op)
      WHEN 'settle' THEN ${s}.settle(p_now, op)
      WHEN 'used' THEN coalesce((SELECT jsonb_build_object('spent', c.spent, 'held', c.held)
        FROM ${s}.counter c WHERE c.key = op->>'k' AND c.win = op->>'w'), '{"spent": 0, "held": 0}')
    END;
    answers := answers || jsonb_build_array(answer);
  END LOOP;
  RETURN answers;
END $$;`
}

/** For the leader only: counts holds of lost replicas as spent, and deletes unused rows. */
function sweeping(s: string): string {
  const begin = `
  PERFORM 1 FROM ${s}.leader WHERE job = p_job AND epoch = p_epoch FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(${COUNTING_LOCK}, hashtext('${s}'));`
  const now = 'bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  const some = (table: string, where: string) =>
    `DELETE FROM ${s}.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${s}.${table} WHERE ${where} LIMIT ${SWEEP_BATCH}));`
  return `
CREATE FUNCTION ${s}.sweep(p_job text, p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE h ${s}.hold; t ${now};
BEGIN${begin}
  FOR h IN SELECT * FROM ${s}.hold WHERE NOT expired
      AND owner NOT IN (SELECT r.id FROM ${s}.replica r WHERE r.until > clock_timestamp()) LIMIT ${SWEEP_BATCH} LOOP
    PERFORM ${s}.spend_whole(h, t);
  END LOOP;
  RETURN true;
END $$;

CREATE FUNCTION ${s}.tidy(p_job text, p_epoch bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE t ${now};
BEGIN${begin}
  ${some('replica', "until < clock_timestamp() - interval '1 day'")}
  ${some('hold', `expired AND expires_at < t - ${EXPIRED_AGE_MS}`)}
  ${some('counter', `held = 0 AND (ends_at <= t OR (ends_at IS NULL AND used_at < t - ${LIFE_AGE_MS}))`)}
  ${some('entry', `covered_at < clock_timestamp() - interval '${COVERED_SECONDS} seconds'`)}
  RETURN true;
END $$;`
}
