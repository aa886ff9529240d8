import { lstat, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, parseStrict, reasonOf } from '@plat/core'
import { LockedError, lockPath } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { contextsFile } from '../shared/contexts.ts'
import { writePrivate } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'

const text = () => Type.String({ minLength: 1 })
const nullable = () => Type.Union([text(), Type.Null()])

const loginSchema = Type.Object(
  {
    issuer: text(),
    clientID: text(),
    audience: text(),
    resource: nullable(),
    /** Name of the person, as the gateway records it. */
    by: text(),
    /** Bearer token for the admin API. */
    token: text(),
    /** RFC 3339. */
    expiresAt: text(),
    refreshToken: nullable(),
  },
  { additionalProperties: false },
)

/** The tokens of a person for one gateway. */
export type Login = Static<typeof loginSchema>

/** How long another command may hold the lock: as long as it refreshes a token, in milliseconds. */
const LOCK_WAIT_MS = 20_000
const LOCK_RETRY_MS = 50

/** Where logins are stored: beside the contexts. */
export function loginsFile(env: NodeJS.ProcessEnv): string {
  return join(dirname(contextsFile(env)), 'logins.json')
}

/**
 * Returns the login at an admin API; null: there is none.
 * @throws CommandError if the file is damaged, or others can read it
 */
export async function loginAt(env: NodeJS.ProcessEnv, adminURL: string): Promise<Login | null> {
  return (await readLogins(loginsFile(env))).get(adminURL) ?? null
}

/**
 * Replaces the login at an admin API by the result of `change`; null removes it. Other commands wait, so that a refresh token is used
 * only once: providers that rotate them revoke all tokens of a login whose refresh token is used twice.
 */
export async function changeLogin(
  env: NodeJS.ProcessEnv,
  adminURL: string,
  change: (current: Login | null) => Promise<Login | null>,
): Promise<Login | null> {
  const file = loginsFile(env)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const release = await lock(file)
  try {
    const logins = await readLogins(file)
    const current = logins.get(adminURL) ?? null
    const changed = await change(current)
    if (changed === current) return current
    if (changed === null) logins.delete(adminURL)
    else logins.set(adminURL, changed)
    await writePrivate(file, `${JSON.stringify({ logins: Object.fromEntries(logins) }, null, 2)}\n`)
    return changed
  } finally {
    release()
  }
}

async function lock(file: string): Promise<() => void> {
  for (let waited = 0; ; waited += LOCK_RETRY_MS) {
    try {
      return lockPath(file)
    } catch (error) {
      if (!(error instanceof LockedError) || waited >= LOCK_WAIT_MS) throw new CommandError(reasonOf(error))
    }
    await delay(LOCK_RETRY_MS)
  }
}

async function readLogins(file: string): Promise<Map<string, Login>> {
  const bytes = await readFile(file).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}`)
  })
  if (bytes === null) return new Map()
  await requirePrivate(file)
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch {
    throw new CommandError(`${file}: is not JSON; remove it, and log in again with plat login`)
  }
  const logins = isObject(value) && isObject(value.logins) ? value.logins : {}
  // A login of another version is none: its person logs in again.
  return new Map(Object.entries(logins).flatMap(([url, one]) => (Check(loginSchema, one) ? [[url, one]] : [])))
}

/** Windows has no such modes: the folder inherits the access list of the user's profile. */
async function requirePrivate(file: string): Promise<void> {
  const uid = process.getuid?.()
  if (uid === undefined) return
  const { mode, uid: owner } = await lstat(file)
  if (owner !== uid) throw new CommandError(`${file} belongs to another user (uid ${owner}) and is not used; remove it`)
  if ((mode & 0o077) !== 0)
    throw new CommandError(`${file} can be read by other users and is not used; close it with: chmod 600 ${file}`)
}
