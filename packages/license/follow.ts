import { type FileWatch, watchFile } from '@plat/config'
import { type Clock, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { fault, type TokenFault } from '@plat/tokens'
import { buildAuthority, type LicenseAuthority, NO_AUTHORITY } from './authority.ts'
import { type License, MAX_LICENSE_BYTES, readLicense } from './license.ts'
import { NO_LICENSE, type Standing, standingOf } from './standing.ts'

/** Interval at which the file and its expiry are checked, in milliseconds. */
const LOOK_MS = 10_000

export interface FollowOptions {
  /** Empty: there is no licence. */
  readonly path: string
  readonly clock: Clock
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Called with the state of the licence at the start and at every check. */
  readonly onStanding: (standing: Standing) => void
  /** Default: that of this build. */
  readonly authority?: LicenseAuthority
}

/** A licence that is reloaded when its file changes. */
export interface FollowedLicense {
  standing(): Standing
  close(): void
}

/**
 * Follows a licence file. Never throws because of its content: a licence enables paid features and must never stop the service, so an invalid one is
 * logged and counts as none.
 */
export async function followLicense(options: FollowOptions): Promise<FollowedLicense> {
  const { path, onStanding } = options
  onStanding(NO_LICENSE)
  if (path === '') return { standing: () => NO_LICENSE, close() {} }
  const authority = options.authority ?? (await ownAuthority(options))
  const followed = new Followed(options, authority)
  await followed.start()
  return followed
}

async function ownAuthority({ log }: FollowOptions): Promise<LicenseAuthority> {
  try {
    return await buildAuthority()
  } catch (error) {
    log.warn({ error: reasonOf(error) }, 'the keys of this build by which licences are verified cannot be used')
    return NO_AUTHORITY
  }
}

class Followed implements FollowedLicense {
  readonly #options: FollowOptions
  readonly #watch: FileWatch
  readonly #stopTimer: () => void
  #read: License | TokenFault = fault('missing', 'it was not read yet')
  #standing: Standing | null = null

  constructor(options: FollowOptions, authority: LicenseAuthority) {
    const { path, clock } = options
    this.#options = options
    this.#watch = watchFile({
      path,
      everyMs: LOOK_MS,
      clock,
      onBytes: (bytes) => this.#update(readBytes(bytes, authority)),
      onError: (error) => this.#update(fault('missing', `it cannot be read: ${reasonOf(error)}`)),
    })
    this.#stopTimer = clock.every(LOOK_MS, () => this.#report())
  }

  start(): Promise<void> {
    return this.#watch.check()
  }

  standing(): Standing {
    return standingOf(this.#read, this.#options.clock.now())
  }

  close(): void {
    this.#watch.stop()
    this.#stopTimer()
  }

  #update(read: License | TokenFault): void {
    this.#read = read
    this.#report()
  }

  /** Logs each change of state once. */
  #report(): void {
    const { log, path, onStanding } = this.#options
    const [before, now] = [this.#standing, this.standing()]
    this.#standing = now
    onStanding(now)
    const { state, reason, edition, daysLeft, license } = now
    if (before?.state === state && before.reason === reason && before.license?.id === license?.id) return
    if (state === 'valid') log.info({ path, edition, daysLeft }, 'the licence is valid')
    else log.warn({ path, state, reason: reason ?? undefined, daysLeft: daysLeft ?? undefined, fix: FIX }, WARNING)
  }
}

const WARNING = 'the licence does not count, or not for long; agents are served as before'
const FIX = 'put a valid licence in the place of licenseFile'

function readBytes(bytes: Uint8Array | null, authority: LicenseAuthority): License | TokenFault {
  if (bytes === null) return fault('missing', 'there is no such file')
  if (bytes.length > MAX_LICENSE_BYTES) return fault('malformed', `the file has more than ${MAX_LICENSE_BYTES} bytes`)
  return readLicense(Buffer.from(bytes).toString('latin1'), authority)
}
