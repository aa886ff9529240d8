import { spawn } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { base32, reasonOf, rfc3339, systemClock, systemIds } from '@plat/core'
import { askToRevoke } from '../revoke/revoke.ts'
import { type AgentGrant, readAgent } from '../shared/agent.ts'
import { mint } from '../shared/broker.ts'
import { findHome, type HomeEnv, writePrivate } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { startForwarder } from './forwarder.ts'
import { openSession } from './session.ts'

export interface RunOptions {
  readonly dir?: string | undefined
  /** `assistant` or `<namespace>/assistant`. */
  readonly agent: string
  readonly command: readonly string[]
}

const SESSION_RANDOM_BYTES = 8
const SECRET_BYTES = 32

/** What the child must never inherit: tokens of the person who runs it. */
const withheld = ['PLAT_BROKER_TOKEN', 'PLAT_BROKER_TOKEN_FILE', 'PLAT_ADMIN_TOKEN', 'PLAT_ADMIN_TOKEN_FILE']

/**
 * Runs any local program as a governed agent: its calls go through a loopback forwarder that adds the session token.
 * Answers the child's exit code.
 */
export async function run(options: RunOptions, output: Output): Promise<number> {
  const [program, ...rest] = options.command
  if (program === undefined) throw new CommandError('say what to run: plat run <agent> -- <command>', 2)
  const { home, env } = await findHome(options.dir)
  const agent = await readAgent(home.dir, options.agent)
  const ids = systemIds(systemClock)
  const session = `run-${base32(ids.random(SESSION_RANDOM_BYTES)).slice(0, 13)}`
  const live = await openSession({
    clock: systemClock,
    mint: () => mint(env.PLAT_IDENTITY_URL, env.PLAT_BROKER_TOKEN, mintRequest(agent, session)),
    failed: (error) => output.err(`plat: the session token could not be renewed: ${String(error)}`),
  })
  const secret = base32(ids.random(SECRET_BYTES))
  const forwarder = await startForwarder({ gatewayURL: env.PLAT_GATEWAY_URL, secret, token: live.token })
  const folder = join(home.runs, session)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writePrivate(join(folder, 'mcp.json'), mcpConfig(agent, forwarder.url))
    return await runChild(program, rest, childEnv(agent, { url: forwarder.url, session, secret, folder }))
  } finally {
    await revokeSession(env, { agent, session, expiresAt: live.end() }, output)
    await forwarder.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Gateways accept a token a little beyond its end, since clocks differ; the revocation lasts longer than that. In milliseconds. */
const BEYOND_EXPIRY_MS = 5 * 60_000

/** What the program leaves behind must not go on as this session, nor whoever copied its token. Told when it does not work. */
async function revokeSession(
  env: HomeEnv,
  of: { readonly agent: AgentGrant; readonly session: string; readonly expiresAt: number },
  output: Output,
): Promise<void> {
  const target = { session: `${of.agent.namespace}/${of.agent.name}/${of.session}` }
  const expiresAt = rfc3339(of.expiresAt + BEYOND_EXPIRY_MS)
  await askToRevoke(env, { target, reason: 'plat run has ended', expiresAt }).catch((error: unknown) =>
    output.err(`plat: the session could not be revoked: ${reasonOf(error)}`),
  )
}

function mintRequest(agent: AgentGrant, session: string) {
  const { namespace, name, scopes, tier } = agent
  return { namespace, agent: name, session, user: userInfo().username, scopes, tier, ttlSeconds: agent.maxTTLSeconds }
}

/** The `mcp.json` that most MCP hosts read: one HTTP server for each tool of the agent. */
function mcpConfig(agent: AgentGrant, url: string): string {
  const servers = agent.tools.map((tool) => [tool, { type: 'http', url: `${url}/mcp/${tool}` }])
  return `${JSON.stringify({ mcpServers: Object.fromEntries(servers) }, null, 2)}\n`
}

function childEnv(
  agent: AgentGrant,
  run: { readonly url: string; readonly session: string; readonly secret: string; readonly folder: string },
): NodeJS.ProcessEnv {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !withheld.includes(name)))
  const model = `${run.url}/llm/${agent.namespace}.${agent.name}`
  return {
    ...inherited,
    PLAT_GATEWAY_URL: run.url,
    PLAT_SESSION: run.session,
    PLAT_MCP_CONFIG: join(run.folder, 'mcp.json'),
    OPENAI_BASE_URL: `${model}/v1`,
    OPENAI_API_KEY: run.secret,
    ANTHROPIC_BASE_URL: model,
  }
}

/** Hands the terminal to the child and waits; a signal that ends the child becomes 128 plus its number, as shells do. */
async function runChild(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(program, args, { env, stdio: 'inherit' })
  const pass = (signal: NodeJS.Signals) => void child.kill(signal)
  const ignore = () => {} // Ctrl-C reaches the child by the terminal; it decides, we wait.
  process.on('SIGTERM', pass).on('SIGHUP', pass).on('SIGINT', ignore)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', () =>
        reject(new CommandError(`cannot run ${program}: is it installed and on the PATH?`, 127)),
      )
      child.once('exit', (code, signal) => resolve(code ?? 128 + signalNumber(signal)))
    })
  } finally {
    process.off('SIGTERM', pass).off('SIGHUP', pass).off('SIGINT', ignore)
  }
}

function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === 'SIGINT' ? 2 : signal === 'SIGKILL' ? 9 : 15
}
