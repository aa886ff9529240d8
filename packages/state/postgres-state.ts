import type { PostgresState, PostgresStateOptions } from './postgres/state.ts'

/** Opens the state in Postgres and creates its schema if missing. Rejects when the server is unreachable or refuses. */
export async function openPostgresState(options: PostgresStateOptions): Promise<PostgresState> {
  // Most gateways have no database and load none of this.
  const { startPostgresState } = await import('./postgres/state.ts')
  return startPostgresState(options)
}
