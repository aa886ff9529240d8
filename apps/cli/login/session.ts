import { type Clock, rfc3339, systemClock } from '@plat/core'
import type { LoginSession } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'
import { changeLogin, type Login, loginAt } from './logins.ts'

/** Tokens are refreshed this long before they expire, in milliseconds. */
const REFRESH_BEFORE_MS = 30_000

/** Returns the stored login at an admin API; null: the person has not logged in. */
export async function findLogin(
  env: NodeJS.ProcessEnv,
  adminURL: string,
  clock: Clock = systemClock,
): Promise<LoginSession | null> {
  const stored = adminURL === '' ? null : await loginAt(env, adminURL)
  if (stored === null) return null
  let login = stored
  return {
    async token() {
      if (!isFresh(login, clock)) login = await refreshed(env, adminURL, clock)
      return login.token
    },
  }
}

/** Without a refresh token, a token is used until it expires. */
function isFresh({ expiresAt, refreshToken }: Login, clock: Clock): boolean {
  return Date.parse(expiresAt) - clock.now() > (refreshToken === null ? 0 : REFRESH_BEFORE_MS)
}

async function refreshed(env: NodeJS.ProcessEnv, adminURL: string, clock: Clock): Promise<Login> {
  const login = await changeLogin(env, adminURL, async (current) => {
    // Another command may have refreshed it, or logged out.
    if (current === null || isFresh(current, clock)) return current
    if (current.refreshToken === null)
      throw new CommandError(`the login at ${adminURL} has expired; ${again(adminURL)}`)
    const { Provider } = await import('./provider.ts')
    const provider = await Provider.discover(current)
    const { token, expiresAt, refreshToken } = await provider.refresh(current.refreshToken)
    return { ...current, token, refreshToken, expiresAt: rfc3339(expiresAt) }
  })
  if (login === null) throw new CommandError(`there is no login at ${adminURL} any more; ${again(adminURL)}`)
  return login
}

function again(adminURL: string): string {
  return `log in again with plat login -admin-url ${adminURL}`
}
