import type { Pool, PoolClient } from 'pg'

/** Tables that belong together, with the table that has their version. */
export interface Tables {
  /** Where the version stands, as SQL writes it. */
  readonly version: string
  /** A schema of their own, made when it is missing; null: wherever the connection looks first. */
  readonly schema: string | null
  /** Each entry brings them from its own index to the next version. What has been released is never changed, only followed. */
  readonly steps: readonly string[]
}

/** What brokers share. */
export const ONCE_TABLES: Tables = {
  version: 'plat_schema',
  schema: null,
  steps: [
    `CREATE TABLE plat_once (
       kind text NOT NULL,
       key bytea NOT NULL,
       value text NOT NULL,
       until bigint NOT NULL,
       PRIMARY KEY (kind, key)
     );
     CREATE INDEX plat_once_until ON plat_once (until);`,
  ],
}

/** The lock under which replicas that start together bring the schema up one after the other: any constant of our own. */
const SCHEMA_LOCK = 0x706c6174

/** The database has a schema that this release does not know. */
export class SchemaTooNewError extends Error {}

/** Creates the tables, or brings them to this release's version. Rejects with `SchemaTooNewError` after a downgrade. */
export async function migrate(pool: Pool, tables: Tables): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
    if (tables.schema !== null) await makeSchema(client, tables.schema)
    await client.query(`CREATE TABLE IF NOT EXISTS ${tables.version} (version integer NOT NULL)`)
    await step(client, tables)
    await client.query('COMMIT')
    client.release()
  } catch (error) {
    // The connection goes away with its transaction.
    client.release(true)
    throw error
  }
}

/** Whoever finds the schema there needs no right to make one: even `IF NOT EXISTS` asks for it. */
async function makeSchema(client: PoolClient, schema: string): Promise<void> {
  const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  if (found.rowCount === 0) await client.query(`CREATE SCHEMA "${schema}"`)
}

async function step(client: PoolClient, { version: table, steps }: Tables): Promise<void> {
  const found = await client.query<{ version: number }>(`SELECT version FROM ${table}`)
  const version = found.rows[0]?.version ?? 0
  if (version > steps.length) {
    throw new SchemaTooNewError(`the state database has schema ${version}, and this release knows ${steps.length}`)
  }
  if (version === steps.length) return
  for (const statements of steps.slice(version)) await client.query(statements)
  await client.query(`DELETE FROM ${table}`)
  await client.query(`INSERT INTO ${table} (version) VALUES ($1)`, [steps.length])
}
