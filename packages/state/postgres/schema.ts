import type { Pool, PoolClient } from 'pg'

/** A group of tables, and the table that holds its version. */
export interface Tables {
  /** Table with the version, quoted. */
  readonly version: string
  /** Schema of the tables, created if missing; null: the default of the connection. */
  readonly schema: string | null
  /** Each entry migrates from its index to the next version. Released entries never change. */
  readonly steps: readonly string[]
}

/** Tables shared by brokers. */
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

/** Lock that serializes migrations of replicas that start together: an arbitrary constant. */
const SCHEMA_LOCK = 0x706c6174

/** The database has a schema of a later release. */
export class SchemaTooNewError extends Error {}

/** Creates the tables, or migrates them to this release. Rejects with SchemaTooNewError after a downgrade. */
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
    // Destroys the connection with its transaction.
    client.release(true)
    throw error
  }
}

/** An existing schema requires no privilege to create one, but even `IF NOT EXISTS` would. */
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
