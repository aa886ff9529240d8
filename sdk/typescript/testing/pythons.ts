import { type Interpreter, interpreters } from '@plat/testkit/processes/interpreters'

/** The oldest version that the SDK for Python supports. */
const OLDEST_MINOR = 10

/** Returns the oldest and the newest supported Python of the machine; one if they are equal. */
export async function oldestAndNewest(): Promise<readonly Interpreter[]> {
  const fit = (await interpreters()).filter(({ minor }) => minor >= OLDEST_MINOR)
  const [oldest, newest] = [fit[0], fit.at(-1)]
  if (oldest === undefined || newest === undefined) return []
  return oldest.minor === newest.minor ? [oldest] : [oldest, newest]
}
