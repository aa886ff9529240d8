import { existsSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LockedError, lockPath } from '@plat/state'

/** Time to install packages once, in milliseconds. */
export const INSTALL_TIMEOUT_MS = 480_000
/** How often a test looks whether another one has installed the packages, in milliseconds. */
const LOOK_EVERY_MS = 500

/**
 * Installs packages into `dir` unless they are there, also if several tests or processes need them at the same time. Resolves to null, or to the
 * reason why they could not be installed: the last line that the installer wrote.
 */
export async function installOnce(dir: string, install: () => Promise<unknown>): Promise<string | null> {
  const complete = path.join(dir, 'complete')
  while (!existsSync(complete)) {
    const unlock = lockedOr(dir)
    if (unlock === null) {
      await delay(LOOK_EVERY_MS)
      continue
    }
    try {
      if (existsSync(complete)) break
      rmSync(dir, { recursive: true, force: true })
      await install()
      writeFileSync(complete, '')
    } catch (error) {
      return reasonIn(error)
    } finally {
      unlock()
    }
  }
  return null
}

function lockedOr(dir: string): (() => void) | null {
  try {
    return lockPath(dir)
  } catch (error) {
    if (error instanceof LockedError) return null
    throw error
  }
}

/** `execFile` kills a command only when its time is over. */
function isOutOfTime(error: unknown): boolean {
  return error instanceof Error && 'killed' in error && error.killed === true
}

function reasonIn(error: unknown): string {
  if (isOutOfTime(error)) return 'not installed in time'
  const written = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
  const text = written.trim() === '' ? String(error) : written
  return text.trim().split('\n').at(-1) ?? text
}
