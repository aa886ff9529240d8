import { setTimeout as delay } from 'node:timers/promises'
import { isObject, rfc3339, withoutTrailing } from '@plat/core'
import { admin, adminOpen } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import type { LoginFlow } from '../shared/login-flows.ts'
import { CommandError, type Output, plain } from '../shared/output.ts'
import { openBrowser } from './browser.ts'
import { changeLogin } from './logins.ts'
import { listenForRedirect } from './loopback.ts'
import { type IssuedTokens, Provider, type ProviderClient, requireSecureURL } from './provider.ts'
import { isWhoami } from './whoami.ts'

/** How long a person may take to log in with a browser, in milliseconds. */
const BROWSER_WAIT_MS = 300_000
/** RFC 8628, section 3.5: how much longer an interval becomes, in seconds. */
const SLOW_DOWN_SECONDS = 5
/** Longest interval between two polls, in seconds. */
const MAX_INTERVAL_SECONDS = 60

/** Flags that select the gateway of a login. */
export interface LoginTarget {
  readonly dir?: string | undefined
  readonly context?: string | undefined
  readonly adminUrl?: string | undefined
}

export interface LoginOptions extends LoginTarget {
  /** Log in on another device. */
  readonly device?: boolean | undefined
  /** Port of the redirect; 0: any free one. */
  readonly port: number
  readonly env?: NodeJS.ProcessEnv
  /** Opens an address in a browser. */
  readonly open?: (url: URL) => void
  /** Waits between two polls of the device flow. */
  readonly pause?: (ms: number) => Promise<void>
}

/** Login configuration of a gateway, as it publishes it. */
interface LoginConfig extends ProviderClient {
  readonly scopes: readonly string[]
}

/**
 * `plat login`: obtains tokens of the identity provider of a gateway, and stores them for its admin API.
 * @throws CommandError if the gateway has no identity provider, or the login fails
 */
export async function login(options: LoginOptions, output: Output): Promise<number> {
  const { env = process.env, device } = options
  const { adminURL, loginFlow } = await addressOf(options, env)
  requireSecureURL(adminURL, 'the admin API')
  const { scopes, ...client } = loginConfigIn(adminURL, await adminOpen(adminURL, '/v1/auth/config'))
  const provider = await Provider.discover(client)
  const flow = device === true ? 'device' : (loginFlow ?? 'browser')
  const issued = await (flow === 'device' ? byDevice : byBrowser)(provider, scopes, options, output)
  const by = await nameAt(adminURL, issued)
  const { token, refreshToken } = issued
  const expiresAt = rfc3339(issued.expiresAt)
  await changeLogin(env, adminURL, async () => ({ ...client, by, token, refreshToken, expiresAt }))
  output.out(`logged in at ${adminURL} as ${plain(by)}`)
  if (refreshToken === null)
    output.err(
      `the login ends at ${expiresAt}: the identity provider issued no refresh token; add offline_access to adminAuth.oidc.scopes`,
    )
  return 0
}

/** The admin API of the flags, else that of other commands. */
export async function addressOf(
  { dir, context, adminUrl }: LoginTarget,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly adminURL: string; readonly loginFlow?: LoginFlow | undefined }> {
  const named = [dir, context, adminUrl].filter((flag) => flag !== undefined)
  if (named.length > 1) throw new CommandError('-dir, -context and -admin-url exclude each other', 2)
  const address = adminUrl ?? (named.length === 0 && !env.PLAT_CONTEXT ? env.PLAT_ADMIN_URL : undefined)
  if (address) return { adminURL: withoutTrailing(address, '/') }
  const found = await findGateway(dir, { env: { ...env, ...(context !== undefined && { PLAT_CONTEXT: context }) } })
  if (found.env.PLAT_ADMIN_URL === '') throw new CommandError('the admin API is not known; name it with -admin-url')
  return { adminURL: found.env.PLAT_ADMIN_URL, loginFlow: found.loginFlow }
}

/** @throws CommandError that names the missing key of gateway.json */
function loginConfigIn(adminURL: string, body: unknown): LoginConfig {
  const { mode, issuer, audience, clientID, scopes, resource } = isObject(body) ? body : {}
  if (mode === 'token')
    throw new CommandError(`${adminURL} accepts the static token only: set adminAuth.mode to both, and adminAuth.oidc`)
  if (typeof issuer !== 'string' || typeof audience !== 'string' || typeof clientID !== 'string')
    throw new CommandError(`${adminURL} does not say how to log in; is it the admin API of a gateway of this version?`)
  if (clientID === '')
    throw new CommandError(
      `${adminURL} has no client at ${plain(issuer)}: set adminAuth.oidc.clientID to a public client`,
    )
  const configured = Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : []
  return {
    ...{ issuer, audience, clientID, scopes: [...new Set(['openid', ...configured])] },
    resource: typeof resource === 'string' ? resource : null,
  }
}

type Flow = (
  provider: Provider,
  scopes: readonly string[],
  options: LoginOptions,
  output: Output,
) => Promise<IssuedTokens>

const byBrowser: Flow = async (provider, scopes, { port, open = openBrowser }, output) => {
  const listener = await listenForRedirect(port)
  try {
    const { url, redeem } = await provider.codeFlow(listener.redirectURL, scopes)
    output.err(
      `Log in with your browser. If none opens, open this address on this machine, or use plat login -device:\n\n${url.href}\n`,
    )
    open(url)
    return await listener.wait(redeem, BROWSER_WAIT_MS)
  } finally {
    listener.close()
  }
}

const byDevice: Flow = async (provider, scopes, { pause = (ms) => delay(ms) }, output) => {
  const flow = await provider.deviceFlow(scopes)
  output.err(`Open ${flow.verificationURL.href} on any device, and enter the code ${plain(flow.userCode)}`)
  if (flow.completeURL !== null) output.err(`or open ${flow.completeURL.href}`)
  let interval = flow.intervalSeconds
  for (let waited = 0; waited < flow.expiresInSeconds; waited += interval) {
    await pause(interval * 1000)
    const issued = await flow.poll()
    if (issued !== null && issued !== 'slowDown') return issued
    if (issued === 'slowDown') interval = Math.min(interval + SLOW_DOWN_SECONDS, MAX_INTERVAL_SECONDS)
  }
  throw new CommandError('the code has expired; start again with plat login -device')
}

/** The name by which the gateway knows the person. @throws CommandError if the gateway refuses the token */
async function nameAt(adminURL: string, { token }: IssuedTokens): Promise<string> {
  const addresses = { PLAT_ADMIN_URL: adminURL, PLAT_GATEWAY_URL: adminURL, PLAT_IDENTITY_URL: '' }
  const who = await admin({ ...addresses, PLAT_ADMIN_TOKEN: token, PLAT_BROKER_TOKEN: '' }, 'GET', '/v1/whoami')
  if (isWhoami(who)) return who.by
  throw new CommandError('the response of the gateway does not say who logged in')
}
