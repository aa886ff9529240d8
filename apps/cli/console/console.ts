import { isObject } from '@plat/core'
import { openBrowser } from '../login/browser.ts'
import { admin } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import { CommandError, type Output } from '../shared/output.ts'

export interface ConsoleCommandOptions {
  readonly dir?: string | undefined
  readonly open: boolean
  readonly env?: NodeJS.ProcessEnv
  /** Opens an address in a browser. */
  readonly browse?: (url: URL) => void
}

/** `plat console`: prints and opens the console; with the static token by a link that logs the browser in once. */
export async function openConsole(
  { dir, open, env = process.env, browse = openBrowser }: ConsoleCommandOptions,
  output: Output,
): Promise<number> {
  const { env: gateway } = await findGateway(dir, { env })
  const base = gateway.PLAT_ADMIN_URL
  if (base === '') throw new CommandError('the admin API is not known; set PLAT_ADMIN_URL')
  const path = gateway.login === undefined ? pathOf(await admin(gateway, 'POST', '/v1/console/links')) : '/console/'
  const url = new URL(`${base}${path}`)
  output.out(url.href)
  if (open) browse(url)
  return 0
}

function pathOf(body: unknown): string {
  if (isObject(body) && typeof body.path === 'string' && body.path.startsWith('/console/')) return body.path
  throw new CommandError('the response of the gateway has no link; is it of this version?')
}
