/** How long a batch waits for one counter that another transaction has locked, in milliseconds. */
const LOCK_MS = 500

/**
 * Counts a batch of operations in one transaction. The counters that it needs come as three arrays, sorted in the same way by every
 * gateway; all of them are locked first, in that order, so that batches cannot deadlock. What is computed in between stays in memory: a
 * counter is written once per batch, however many operations change it. Items name their counter by its place \`n\` in the arrays.
 *
 * Returns \`{busy: n}\` with nothing done when counter \`n\` stays locked, else \`{answers, xid}\`.
 */
export function countFunction(s: string): string {
  return `
CREATE FUNCTION ${s}.count(
  p_owner text, p_deadline bigint, p_keys text[], p_wins text[], p_ends bigint[], p_ops jsonb)
  RETURNS jsonb LANGUAGE plpgsql SET lock_timeout = '${LOCK_MS}ms' AS $$
DECLARE
  t bigint; i integer; op jsonb; item jsonb; answer jsonb; answers jsonb[] := '{}';
  now_spent bigint[] := '{}'; now_held bigint[] := '{}'; dirty boolean[] := '{}';
  one_spent bigint; one_held bigint; amount bigint; actual bigint; total bigint; room bigint;
  known ${s}.hold;
BEGIN
${locking(s)}
  t := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
  FOR place IN 0..jsonb_array_length(p_ops) - 1 LOOP
    op := p_ops->place;
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
  FOR i IN 1..cardinality(p_keys) LOOP
    CONTINUE WHEN NOT dirty[i];
    UPDATE ${s}.counter c SET spent = now_spent[i], held = now_held[i], used_at = t
      WHERE c.key = p_keys[i] AND c.win = p_wins[i];
  END LOOP;
  RETURN jsonb_build_object('answers', to_jsonb(answers), 'xid', pg_current_xact_id_if_assigned()::text);
END $$;`
}

/** Another gateway may make or remove the same counter at the same time: then it is looked up again. */
function locking(s: string): string {
  return `
  BEGIN
    FOR n IN 1..cardinality(p_keys) LOOP
      i := n;
      LOOP
        SELECT c.spent, c.held INTO one_spent, one_held FROM ${s}.counter c
          WHERE c.key = p_keys[i] AND c.win = p_wins[i] FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO ${s}.counter (key, win, ends_at, used_at)
          VALUES (p_keys[i], p_wins[i], p_ends[i], (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
          ON CONFLICT DO NOTHING;
      END LOOP;
      now_spent[i] := one_spent; now_held[i] := one_held; dirty[i] := false;
    END LOOP;
  EXCEPTION WHEN lock_not_available THEN
    RETURN jsonb_build_object('busy', i - 1);
  END;`
}

/** Adds \`p_items\` to what is held when all of them fit, else makes \`answer\` say what is short. */
function adding(items: string): string {
  return `
      FOR j IN 0..jsonb_array_length(${items}) - 1 LOOP
        item := ${items}->j;
        i := (item->>'n')::integer + 1;
        room := greatest(0, (item->>'c')::bigint - now_spent[i] - now_held[i]);
        IF (item->>'a')::bigint > (item->>'c')::bigint - now_spent[i] - now_held[i] THEN
          answer := jsonb_build_object('short', j, 'left', room);
        END IF;
        EXIT WHEN answer <> '{}';
      END LOOP;
      IF answer = '{}' THEN
        FOR j IN 0..jsonb_array_length(${items}) - 1 LOOP
          item := ${items}->j;
          i := (item->>'n')::integer + 1;
          now_held[i] := now_held[i] + (item->>'a')::bigint; dirty[i] := true;
        END LOOP;
      END IF;`
}

/** A take that runs after its release, or long after it was sent, must not hold anything: nothing would ever release it. */
function taking(s: string): string {
  return `
      SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id';
      IF t > p_deadline OR EXISTS (SELECT 1 FROM ${s}.closed WHERE ref = op->>'ref') THEN
        answer := '{"over": true}';
      ELSIF known.id IS NOT NULL AND NOT known.expired THEN
        answer := jsonb_build_object('same', known.taken = op->>'taken');
        IF known.taken = op->>'taken' THEN UPDATE ${s}.hold SET ref = op->>'ref' WHERE id = known.id; END IF;
      ELSE
${adding("op->'items'")}
        IF answer = '{}' THEN
          IF known.id IS NOT NULL THEN DELETE FROM ${s}.hold WHERE id = known.id; END IF;
          INSERT INTO ${s}.hold (id, ref, owner, expires_at, taken, items)
            VALUES (op->>'id', op->>'ref', p_owner, t + (op->>'ttl')::bigint, op->>'taken', op->'items');
        END IF;
      END IF;`
}

function extending(s: string): string {
  return `
      SELECT * INTO known FROM ${s}.hold WHERE id = op->>'id' AND ref = op->>'ref' AND NOT expired;
      IF known.id IS NULL THEN
        answer := '{"over": true}';
      ELSIF known.grown < (op->>'grown')::integer THEN
${adding("op->'more'")}
        IF answer = '{}' THEN
          UPDATE ${s}.hold SET items = op->'items', grown = (op->>'grown')::integer WHERE id = known.id;
        END IF;
      END IF;`
}

/** An item that the gateway does not know of was added by an extension whose answer was lost: its counter is not among the arrays. */
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
