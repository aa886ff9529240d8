import { until } from '../until.ts'
import type { TestPostgres } from './server.ts'

/** Processes of the server that serve plat. */
export async function backendsOf(postgres: TestPostgres): Promise<readonly number[]> {
  const rows = await postgres.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'plat'")
  return rows.map(({ pid }) => Number(pid))
}

/** Calls `work` while these processes are paused. Those that have ended are left out. */
export async function whilePaused<T>(pids: readonly number[], work: () => Promise<T>): Promise<T> {
  for (const pid of pids) signal(pid, 'SIGSTOP')
  try {
    return await work()
  } finally {
    for (const pid of pids) signal(pid, 'SIGCONT')
  }
}

/** Kills one of the server's processes: it ends all connections and reads its log again. Resolves when it accepts connections. */
export async function crash(postgres: TestPostgres): Promise<void> {
  const [pid] = await backendsOf(postgres)
  if (pid === undefined) throw new Error('the server has no connection of plat')
  signal(pid, 'SIGKILL')
  const isBack = () =>
    backendsOf(postgres).then(
      (pids) => !pids.includes(pid),
      () => false,
    )
  await until(isBack, 'the server after its crash')
}

/** A connection may end at any time, and its process with it. */
function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
