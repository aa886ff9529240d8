import type { PostgresState, PostgresStateOptions } from './postgres/state.ts'

/** Opens the state in Postgres, making its schema when it is missing. Rejects when the server cannot be reached or refuses. */
export async function openPostgresState(options: PostgresStateOptions): Promise<PostgresState> {
  // Most gateways have no database, and load nothing of this.
  const { startPostgresState } = await import('./postgres/state.ts')
  return startPostgresState(options)
}
