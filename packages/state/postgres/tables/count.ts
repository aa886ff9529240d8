/** How long a batch waits for one counter locked by another transaction, in milliseconds. */
const LOCK_MS = 500

/**
 * Counts a batch of operations in one transaction. The counters that it needs are passed as three arrays, sorted alike by every gateway; all of them
 * are locked first, in that order, so that batches cannot deadlock. Intermediate results stay in memory: a counter is written once per batch,
 * however many operations change it. Items refer to their counter by its index \`n\` in the arrays.
 *
 * Returns \`{answers, xid}\`; fails with \`lock_not_available\` and no change when a counter stays locked (see \`lockedCounter\`). No subtransaction
 * catches that: a row locked within one and written after it costs a multixact. Plans always use the indexes: a plan made while the tables were
 * small would later scan them.
 */
export function countFunction(s: string): string {
  return `
CREATE OR REPLACE FUNCTION ${s}.count(
  p_owner text, p_deadline bigint, p_keys text[], p_wins text[], p_ends bigint[], p_ops jsonb)
  RETURNS jsonb LANGUAGE plpgsql SET lock_timeout = '${LOCK_MS}ms' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  t bigint; i integer; op jsonb; item jsonb; answer jsonb; answers jsonb[] := '{}';
  now_spent bigint[]; now_held bigint[]; dirty boolean[];
  amount bigint; actual bigint; total bigint; room bigint;
  known ${s}.hold; is_held boolean;
BEGIN
${locking(s)}
  t := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  dirty := array_fill(false, ARRAY[cardinality(p_keys)]);
  FOR op IN SELECT * FROM jsonb_array_elements(p_ops) LOOP
    answer := '{}';
    IF op->>'do' = 'take' THEN
${taking(s)}
    ELSIF op->>'do' = 'extend' THEN
${extending(s)}
    ELSE
${settling(s)}
    END IF;
    answers := answers || answer;
  END LOOP;
  UPDATE ${s}.counter c SET spent = u.spent, held = u.held, used_at = t
    FROM unnest(p_keys, p_wins, now_spent, now_held, dirty) AS u(key, win, spent, held, dirty)
    WHERE u.dirty AND c.key = u.key AND c.win = u.win;
  RETURN jsonb_build_object('answers', to_jsonb(answers), 'xid', pg_current_xact_id_if_assigned()::text);
END $$;`
}

/**
 * Another gateway may create or delete the same counters concurrently: then they are looked up again. Rows are locked in the order of the arrays,
 * since the lock follows the sort.
 */
function locking(s: string): string {
  return `
  LOOP
    SELECT array_agg(l.spent), array_agg(l.held) INTO now_spent, now_held FROM (
      SELECT c.spent, c.held FROM unnest(p_keys, p_wins) WITH ORDINALITY AS u(key, win, place)
        JOIN ${s}.counter c ON c.key = u.key AND c.win = u.win ORDER BY u.place FOR UPDATE OF c) AS l;
    EXIT WHEN cardinality(p_keys) = coalesce(cardinality(now_spent), 0);
    INSERT INTO ${s}.counter (key, win, ends_at, used_at)
      SELECT u.key, u.win, u.ends_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
        FROM unnest(p_keys, p_wins, p_ends) WITH ORDINALITY AS u(key, win, ends_at, place)
        WHERE NOT EXISTS (SELECT 1 FROM ${s}.counter c WHERE c.key = u.key AND c.win = u.win)
        ORDER BY u.place
      ON CONFLICT DO NOTHING;
  END LOOP;`
}

/** Sets \`answer\` to the first item that does not fit. */
function checking(items: string): string {
  return `
      FOR j IN 0..jsonb_array_length(${items}) - 1 LOOP
        item := ${items}->j;
        i := (item->>'n')::integer + 1;
        room := (item->>'c')::bigint - now_spent[i] - now_held[i];
        IF (item->>'a')::bigint > room THEN
          answer := jsonb_build_object('short', j, 'left', greatest(0, room));
          EXIT;
        END IF;
      END LOOP;`
}

function holding(items: string): string {
  return `
        FOR j IN 0..jsonb_array_length(${items}) - 1 LOOP
          item := ${items}->j;
          i := (item->>'n')::integer + 1;
          now_held[i] := now_held[i] + (item->>'a')::bigint; dirty[i] := true;
        END LOOP;`
}

/**
 * A take that runs after its release, or long after it was sent, must not hold anything: nothing would ever release it. Most takes are new and fit:
 * the insert alone finds that out.
 */
function taking(s: string): string {
  const insert = `
        INSERT INTO ${s}.hold (id, ref, owner, expires_at, taken, items)
          SELECT op->>'id', op->>'ref', p_owner, t + (op->>'ttl')::bigint, op->>'taken', op->'items'`
  return `
${checking("op->'items'")}
      is_held := false;
      IF answer = '{}' AND t <= p_deadline THEN${insert}
            WHERE NOT EXISTS (SELECT 1 FROM ${s}.closed WHERE ref = op->>'ref')
          ON CONFLICT DO NOTHING;
        is_held := FOUND;
      END IF;
      IF NOT is_held THEN
        SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id';
        IF t > p_deadline OR EXISTS (SELECT 1 FROM ${s}.closed WHERE ref = op->>'ref') THEN
          answer := '{"over": true}';
        ELSIF known.id IS NOT NULL AND NOT known.expired THEN
          answer := jsonb_build_object('same', known.taken = op->>'taken');
          IF known.taken = op->>'taken' THEN UPDATE ${s}.hold SET ref = op->>'ref' WHERE id = known.id; END IF;
        ELSIF answer = '{}' THEN
          DELETE FROM ${s}.hold WHERE id = op->>'id';${insert};
          is_held := true;
        END IF;
      END IF;
      IF is_held THEN
${holding("op->'items'")}
      END IF;`
}

function extending(s: string): string {
  return `
      SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id' AND ref = op->>'ref' AND NOT expired;
      IF known.id IS NULL THEN
        answer := '{"over": true}';
      ELSIF known.grown < (op->>'grown')::integer THEN
${checking("op->'more'")}
        IF answer = '{}' THEN
${holding("op->'more'")}
          UPDATE ${s}.hold SET items = op->'items', grown = (op->>'grown')::integer WHERE id = known.id;
        END IF;
      END IF;`
}

/** An item unknown to the gateway was added by an extension whose result was lost: its counter is not among the arrays. */
function settling(s: string): string {
  return `
      DELETE FROM ${s}.hold WHERE id = op->>'id' AND ref = op->>'ref' RETURNING * INTO known;
      IF known.id IS NULL THEN
        IF (op->>'unsure')::boolean THEN
          INSERT INTO ${s}.closed (ref) VALUES (op->>'ref') ON CONFLICT DO NOTHING;
        END IF;
      ELSE
        answer := '[]';
        FOR j IN 0..jsonb_array_length(known.items) - 1 LOOP
          item := known.items->j;
          amount := (item->>'a')::bigint;
          actual := coalesce((op->'spent'->>(item->>'k'))::bigint, amount);
          i := (op->'n'->>j)::integer + 1;
          IF i IS NULL OR p_keys[i] <> item->>'k' OR p_wins[i] <> item->>'w' THEN
            SELECT min(u.place) INTO i FROM unnest(p_keys, p_wins) WITH ORDINALITY AS u(k, w, place)
              WHERE u.k = item->>'k' AND u.w = item->>'w';
          END IF;
          IF i IS NULL THEN
            total := ${s}.move(item, CASE WHEN known.expired THEN actual - amount ELSE actual END,
              CASE WHEN known.expired THEN 0 ELSE -amount END, t);
          ELSE
            now_spent[i] := greatest(0, now_spent[i] + CASE WHEN known.expired THEN actual - amount ELSE actual END);
            IF NOT known.expired THEN now_held[i] := greatest(0, now_held[i] - amount); END IF;
            dirty[i] := true;
            total := now_spent[i];
          END IF;
          answer := answer || to_jsonb(total);
        END LOOP;
        answer := jsonb_build_object('spent', answer);
      END IF;`
}

/** Returns the index of the first of these counters that another transaction has locked; null when there is none. Arguments: keys and windows. */
export function lockedCounter(s: string): string {
  return `SELECT (min(u.place) - 1)::integer AS place FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(key, win, place)
    WHERE EXISTS (SELECT 1 FROM ${s}.counter c WHERE c.key = u.key AND c.win = u.win)
      AND NOT EXISTS (SELECT 1 FROM ${s}.counter c WHERE c.key = u.key AND c.win = u.win FOR UPDATE SKIP LOCKED)`
}
