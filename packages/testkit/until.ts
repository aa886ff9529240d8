import { setTimeout as sleep } from 'node:timers/promises'

/** How long a test waits for what must happen, in milliseconds: far above what the slowest machine needs. */
const PATIENCE_MS = Number(process.env.PATIENCE ?? 180_000)

/** Between two looks, in milliseconds. */
const LOOK_EVERY_MS = 10

/**
 * Waits for what must happen sooner or later, however slow disk and processor are: a test that counts turns or milliseconds
 * tests the machine. `between` runs before each further look, for instance to move a test's clock.
 * @throws Error saying `what` was awaited, after three minutes.
 */
export async function until(
  seen: () => boolean | Promise<boolean>,
  what: string | (() => string),
  between?: () => unknown,
): Promise<void> {
  const giveUp = performance.now() + PATIENCE_MS
  while (!(await seen())) {
    if (performance.now() > giveUp)
      throw new Error(`timed out waiting for: ${typeof what === 'string' ? what : what()}`)
    await between?.()
    await sleep(LOOK_EVERY_MS)
  }
}
