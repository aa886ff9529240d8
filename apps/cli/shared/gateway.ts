import { readFile } from 'node:fs/promises'
import { reasonOf, withoutTrailing } from '@plat/core'
import { findLogin } from '../login/session.ts'
import { type Context, contextNamed, readContexts } from './contexts.ts'
import { findHome, type GatewayEnv, type HomeEnv, homeOf, type PlatFolder, readHomeEnv } from './home.ts'
import type { LoginFlow } from './login-flows.ts'
import { CommandError, type Format } from './output.ts'

/** The gateway that a command talks to. */
export interface FoundGateway {
  /** The directory of its `plat up`; null: only addresses are known. */
  readonly home: PlatFolder | null
  /** An address or token that is not known is empty. */
  readonly env: GatewayEnv
  /** How people log in, if its context says so. */
  readonly loginFlow?: LoginFlow | undefined
}

interface Search {
  readonly from?: string
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Finds the gateway of a command, by the first of: `-context` and the other flags (which `useFlags` turns into variables), the variables
 * PLAT_CONTEXT, or PLAT_ADMIN_TOKEN with PLAT_ADMIN_URL or PLAT_GATEWAY_URL; `-dir`; the context in use; `.plat/env` of the
 * current directory or above it. A login of the person replaces the static token, unless a token or its file is named.
 * @throws CommandError with the next step
 */
export async function findGateway(dir: string | undefined, search: Search = {}): Promise<FoundGateway> {
  const found = await locateGateway(dir, search)
  const { PLAT_ADMIN_TOKEN: token, PLAT_ADMIN_URL: url } = found.env
  if (token !== '' && found.home === null) return found
  return { ...found, env: await withLogin(found.env, url, search.env) }
}

/**
 * The addresses and tokens of a gateway as they are now: a restarted `plat up` may have other ones. Null: nothing runs in its directory
 * any more.
 */
export async function currentEnv({ home, env }: FoundGateway): Promise<GatewayEnv | null> {
  const now = home === null ? env : await readHomeEnv(home)
  return home === null || now === null ? now : withLogin(now, now.PLAT_ADMIN_URL)
}

async function withLogin(env: HomeEnv, adminURL: string, variables = process.env): Promise<GatewayEnv> {
  const login = await findLogin(variables, adminURL)
  return login === null ? env : { ...env, login }
}

async function locateGateway(
  dir: string | undefined,
  { from = process.cwd(), env = process.env }: Search,
): Promise<FoundGateway> {
  if (dir !== undefined) return findHome(dir, from)
  const named = env.PLAT_CONTEXT
  if (named) return gatewayOf(named, contextNamed(await readContexts(env), named))
  const byVariables = await fromVariables(env)
  if (byVariables !== null) return { home: null, env: byVariables }
  const all = await readContexts(env)
  if (all.current !== null) return gatewayOf(all.current, contextNamed(all, all.current))
  return findHome(undefined, from)
}

/** Null: the variables name no gateway. An address without a token or a login is not enough: `plat run` sets some for its programs. */
async function fromVariables(env: NodeJS.ProcessEnv): Promise<HomeEnv | null> {
  const token = env.PLAT_ADMIN_TOKEN || (await tokenIn(env.PLAT_ADMIN_TOKEN_FILE))
  const broker = env.PLAT_BROKER_TOKEN || (await tokenIn(env.PLAT_BROKER_TOKEN_FILE))
  const { PLAT_ADMIN_URL: admin, PLAT_GATEWAY_URL: gateway, PLAT_IDENTITY_URL: identity = '' } = env
  const address = withoutTrailing(admin || gateway || '', '/')
  const hasAdmin = address !== '' && (token !== '' || (await findLogin(env, address)) !== null)
  if (!hasAdmin && !(broker !== '' && identity !== '')) return null
  return addresses({ admin: address, gateway: gateway || admin || '', identity, token, broker })
}

async function gatewayOf(name: string, context: Context): Promise<FoundGateway> {
  const { dir, adminURL, gatewayURL, identityURL = '', tokenFile, brokerTokenFile, login: loginFlow } = context
  if (dir !== undefined) {
    const home = homeOf(dir)
    const env = await readHomeEnv(home)
    if (env === null) throw new CommandError(`context ${name}: no running plat in ${dir}; start it with plat up ${dir}`)
    return { home, env, loginFlow }
  }
  const [admin, gateway] = [adminURL ?? gatewayURL ?? '', gatewayURL ?? adminURL ?? '']
  const [token, broker] = [await tokenIn(tokenFile), await tokenIn(brokerTokenFile)]
  return { home: null, env: addresses({ admin, gateway, identity: identityURL, token, broker }), loginFlow }
}

function addresses(given: Readonly<Record<'admin' | 'gateway' | 'identity' | 'token' | 'broker', string>>): HomeEnv {
  return {
    PLAT_ADMIN_URL: withoutTrailing(given.admin, '/'),
    PLAT_GATEWAY_URL: withoutTrailing(given.gateway, '/'),
    PLAT_IDENTITY_URL: withoutTrailing(given.identity, '/'),
    PLAT_ADMIN_TOKEN: given.token,
    PLAT_BROKER_TOKEN: given.broker,
  }
}

/** The token in a file; empty without one. */
async function tokenIn(file: string | undefined): Promise<string> {
  if (!file) return ''
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CommandError(`the token file ${file} cannot be read: ${reasonOf(error)}`)
  })
  if (text.trim() === '') throw new CommandError(`the token file ${file} is empty`)
  return text.trim()
}

/** Options of a command that prints what a gateway knows: that of `dir`, and the form of the output. */
export interface GatewayOptions<F = Format> {
  readonly dir?: string | undefined
  readonly output: F
}

/** Flags that select a gateway, of every command that talks to one. */
export interface GatewayFlags {
  readonly dir?: string
  readonly context?: string
  readonly adminUrl?: string
  readonly gatewayUrl?: string
  readonly identityUrl?: string
  readonly tokenFile?: string
  readonly brokerTokenFile?: string
}

const VARIABLES = {
  context: 'PLAT_CONTEXT',
  adminUrl: 'PLAT_ADMIN_URL',
  gatewayUrl: 'PLAT_GATEWAY_URL',
  identityUrl: 'PLAT_IDENTITY_URL',
  tokenFile: 'PLAT_ADMIN_TOKEN_FILE',
  brokerTokenFile: 'PLAT_BROKER_TOKEN_FILE',
} as const

/**
 * Writes flags into the variables that mean the same. A flag for a token file replaces a token of the environment.
 * @throws CommandError with exit code 2 if flags contradict each other
 */
export async function useFlags(flags: GatewayFlags, env: NodeJS.ProcessEnv): Promise<void> {
  const given = Object.entries(VARIABLES).flatMap(([flag, variable]) => {
    const value: unknown = Reflect.get(flags, flag)
    return typeof value === 'string' ? [{ flag, variable, value }] : []
  })
  if (flags.dir !== undefined && given.length > 0)
    throw new CommandError('-dir names a gateway already: leave out -context and the addresses', 2)
  if (flags.context !== undefined && given.length > 1)
    throw new CommandError('-context names a gateway already: leave out the addresses', 2)
  if (given.length > 0 && flags.context === undefined) delete env.PLAT_CONTEXT
  for (const { variable, value } of given) {
    env[variable] = value
    if (variable.endsWith('_FILE')) delete env[variable.slice(0, -'_FILE'.length)]
  }
  // Otherwise the command would go to another gateway than the named one.
  const hasToken = Boolean(env.PLAT_ADMIN_TOKEN || env.PLAT_ADMIN_TOKEN_FILE)
  const { adminUrl } = flags
  if (adminUrl !== undefined && !hasToken && (await findLogin(env, withoutTrailing(adminUrl, '/'))) === null)
    throw new CommandError('-admin-url needs -token-file, PLAT_ADMIN_TOKEN, or a login: plat login -admin-url <url>', 2)
  if (flags.tokenFile !== undefined && !(env.PLAT_ADMIN_URL || env.PLAT_GATEWAY_URL))
    throw new CommandError('-token-file needs -admin-url, or PLAT_ADMIN_URL', 2)
}
