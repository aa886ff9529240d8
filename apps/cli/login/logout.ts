import { CommandError, type Output } from '../shared/output.ts'
import { addressOf, type LoginTarget } from './login.ts'
import { changeLogin, loginAt } from './logins.ts'
import { Provider } from './provider.ts'

/**
 * `plat logout`: revokes the refresh token at the identity provider, and removes the stored tokens.
 * @returns 0, also if the provider could not be reached: the tokens are removed, and a warning says so
 */
export async function logout(target: LoginTarget, output: Output, env = process.env): Promise<number> {
  const { adminURL } = await addressOf(target, env)
  const login = await loginAt(env, adminURL)
  if (login === null) {
    output.out(`there is no login at ${adminURL}`)
    return 0
  }
  await changeLogin(env, adminURL, async () => null)
  if (login.refreshToken !== null) {
    try {
      await (await Provider.discover(login)).revoke(login.refreshToken)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      output.err(`warning: ${error.message}; the tokens are removed here, and valid there until they expire`)
    }
  }
  output.out(`logged out at ${adminURL}`)
  return 0
}
