import type { MovedKind, MoveOptions } from './postgres/move/move.ts'
import type { PostgresState, PostgresStateOptions } from './postgres/state.ts'

/** Opens the state in Postgres and creates its schema if missing. Rejects when the server is unreachable or refuses. */
export async function openPostgresState(options: PostgresStateOptions): Promise<PostgresState> {
  // Most gateways have no database and load none of this.
  const { startPostgresState } = await import('./postgres/state.ts')
  return startPostgresState(options)
}

/** Moves state into Postgres: see `MoveOptions`. Rejects with MoveError. */
export async function moveStateToPostgres(options: MoveOptions): Promise<MovedKind[]> {
  const { moveState } = await import('./postgres/move/move.ts')
  return moveState(options)
}
