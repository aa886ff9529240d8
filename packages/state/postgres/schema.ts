import type { Pool, PoolClient } from 'pg'

/** Each entry brings the schema from its own index to the next version. What has been released is never changed, only followed. */
const STEPS: readonly string[] = [
  `CREATE TABLE plat_once (
     kind text NOT NULL,
     key bytea NOT NULL,
     value text NOT NULL,
     until bigint NOT NULL,
     PRIMARY KEY (kind, key)
   );
   CREATE INDEX plat_once_until ON plat_once (until);`,
]

/** The lock under which replicas that start together bring the schema up one after the other: any constant of our own. */
const SCHEMA_LOCK = 0x706c6174

/** The database has a schema that this release does not know. */
export class SchemaTooNew extends Error {}

/** Creates the tables, or brings them to this release's version. Rejects with `SchemaTooNew` after a downgrade. */
export async function migrate(pool: Pool): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [SCHEMA_LOCK])
    await client.query('CREATE TABLE IF NOT EXISTS plat_schema (version integer NOT NULL)')
    await step(client)
    await client.query('COMMIT')
    client.release()
  } catch (error) {
    // The connection goes away with its transaction.
    client.release(true)
    throw error
  }
}

async function step(client: PoolClient): Promise<void> {
  const found = await client.query<{ version: number }>('SELECT version FROM plat_schema')
  const version = found.rows[0]?.version ?? 0
  if (version > STEPS.length) {
    throw new SchemaTooNew(`the state database has schema ${version}, and this release knows ${STEPS.length}`)
  }
  if (version === STEPS.length) return
  for (const statements of STEPS.slice(version)) await client.query(statements)
  await client.query('DELETE FROM plat_schema')
  await client.query('INSERT INTO plat_schema (version) VALUES ($1)', [STEPS.length])
}
