/**
 * The fifth version: copies of the gateways' ledgers. A chunk has whole lines, compressed; it is appended together with the head of its copy, and only
 * if it continues that head. `writer` and `until`: the process that appends, by the clock of the server.
 */
export function version5(s: string): string {
  return `
CREATE TABLE ${s}.ledger_copy (
  ledger text PRIMARY KEY, tenant text NOT NULL, replica text NOT NULL, path text NOT NULL,
  seq bigint NOT NULL DEFAULT -1, hash text NOT NULL, bytes bigint NOT NULL DEFAULT 0,
  writer text NOT NULL, until timestamptz NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (replica, path, tenant)
);
CREATE TABLE ${s}.ledger_chunk (
  ledger text NOT NULL REFERENCES ${s}.ledger_copy ON DELETE CASCADE,
  first bigint NOT NULL, last bigint NOT NULL, prev text NOT NULL, hash text NOT NULL,
  position bigint NOT NULL, bytes integer NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (ledger, first)
);
ALTER TABLE ${s}.ledger_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX ledger_chunk_position ON ${s}.ledger_chunk (ledger, position);
CREATE TABLE ${s}.ledger_copy_segment (
  ledger text NOT NULL REFERENCES ${s}.ledger_copy ON DELETE CASCADE,
  first bigint NOT NULL, last bigint NOT NULL, has_left boolean NOT NULL, entry text NOT NULL,
  PRIMARY KEY (ledger, first)
);
${claiming(s)}
${shipping(s)}`
}

/** Returns null when the copy is this writer's now, \`name\` when its name is that of another ledger, \`writer\` while another one is alive. */
function claiming(s: string): string {
  return `
CREATE FUNCTION ${s}.claim_copy(
  p_ledger text, p_tenant text, p_replica text, p_path text, p_writer text, p_lease bigint, p_hash text)
  RETURNS text LANGUAGE plpgsql AS $$
DECLARE known ${s}.ledger_copy; ends timestamptz := clock_timestamp() + p_lease * interval '1 ms';
BEGIN
  -- Nothing of it was copied.
  DELETE FROM ${s}.ledger_copy c WHERE c.replica = p_replica AND c.path = p_path AND c.tenant = p_tenant
    AND c.ledger <> p_ledger AND c.seq = -1;
  PERFORM 1 FROM ${s}.ledger_copy c
    WHERE c.replica = p_replica AND c.path = p_path AND c.tenant = p_tenant AND c.ledger <> p_ledger;
  IF FOUND THEN RETURN 'name'; END IF;
  SELECT * INTO known FROM ${s}.ledger_copy c WHERE c.ledger = p_ledger FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO ${s}.ledger_copy (ledger, tenant, replica, path, hash, writer, until)
      VALUES (p_ledger, p_tenant, p_replica, p_path, p_hash, p_writer, ends);
    RETURN NULL;
  END IF;
  IF known.tenant <> p_tenant THEN RETURN 'name'; END IF;
  IF known.writer <> p_writer AND known.until > clock_timestamp() THEN RETURN 'writer'; END IF;
  UPDATE ${s}.ledger_copy c SET writer = p_writer, until = ends, replica = p_replica, path = p_path
    WHERE c.ledger = p_ledger;
  RETURN NULL;
END $$;`
}

/** Returns the head of the copy, and whether it is the end of this chunk: also when the chunk is sent a second time. */
function shipping(s: string): string {
  return `
CREATE FUNCTION ${s}.ship_chunk(
  p_ledger text, p_writer text, p_lease bigint, p_seq bigint, p_prev text, p_last bigint, p_hash text,
  p_position bigint, p_end bigint, p_data bytea, p_has_left boolean, p_entry text,
  OUT head bigint, OUT head_hash text, OUT writer text, OUT done boolean) LANGUAGE plpgsql AS $$
DECLARE known ${s}.ledger_copy;
BEGIN
  SELECT * INTO known FROM ${s}.ledger_copy c WHERE c.ledger = p_ledger FOR UPDATE;
  head := known.seq; head_hash := known.hash; writer := known.writer;
  done := known.seq = p_last AND known.hash = p_hash AND known.writer = p_writer;
  IF done OR known.writer IS DISTINCT FROM p_writer OR known.seq <> p_seq OR known.hash <> p_prev
    OR known.bytes <> p_position THEN done := coalesce(done, false); RETURN; END IF;
  IF NOT p_has_left THEN
    INSERT INTO ${s}.ledger_chunk (ledger, first, last, prev, hash, position, bytes, data)
      VALUES (p_ledger, p_seq + 1, p_last, p_prev, p_hash, p_position, p_end - p_position, p_data);
  END IF;
  IF p_entry IS NOT NULL THEN
    INSERT INTO ${s}.ledger_copy_segment (ledger, first, last, has_left, entry)
      VALUES (p_ledger, (p_entry::jsonb->>'first')::bigint, p_last, p_has_left, p_entry);
  END IF;
  UPDATE ${s}.ledger_copy c SET seq = p_last, hash = p_hash, bytes = p_end, at = clock_timestamp(),
      until = clock_timestamp() + p_lease * interval '1 ms' WHERE c.ledger = p_ledger;
  head := p_last; head_hash := p_hash; done := true;
END $$;`
}
