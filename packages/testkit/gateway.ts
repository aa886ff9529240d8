import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { TEST_ISSUER, type TestIssuer, testIssuer } from './identity.ts'
import { wholeLines } from './ledger.ts'
import { policiesFile, testPolicy } from './policies.ts'

/** Complaints that are kept; a gateway that says more has said enough. */
const MAX_COMPLAINTS = 100

const BIN = fileURLToPath(new URL('../../services/gateway/bin/plat-gateway.mjs', import.meta.url))

/** A `plat-gateway` in a separate process. */
export interface GatewayProcess {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  /** Of `adminListen`, else the same. */
  readonly adminUrl: string
  /** A session token of `default/assistant` for every server that was named, valid for fifteen minutes. */
  readonly token: string
  /** Signs what the gateway trusts, and everything that it must not. */
  readonly issuer: TestIssuer
  readonly pid: number
  /** Log lines at level `error`, and everything on standard error. The oldest are kept. */
  complaints(): readonly string[]
  /** The ledger's lines. */
  ledger(): Promise<string[]>
  /** Ends the process with SIGKILL, in the middle of whatever it does. */
  kill(): Promise<void>
  /** Ends the process with SIGTERM and removes its files. */
  close(): Promise<void>
}

export interface GatewaySetup {
  /** Servers in namespace `default`: name to URL. */
  readonly servers: Readonly<Record<string, string>>
  /** Tools that are denied; everything else is allowed. */
  readonly denied?: readonly string[]
  /** Scopes of the token beside those of the servers, such as `models:small`. */
  readonly scopes?: readonly string[]
  /** Keys of gateway.json laid over the defaults of the test. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Variables of its environment, such as `PLAT_SEAL_KEY`. */
  readonly env?: Readonly<Record<string, string>>
  /** Command in which it runs, such as a sandbox; default: none. */
  readonly within?: readonly string[]
  /** Trusted issuer; default: a new one. */
  readonly issuer?: TestIssuer
}

/** Starts the gateway by its binary, on rendered files, with durable audit; answers when it listens. */
export async function startGatewayProcess({
  servers,
  denied = [],
  scopes = [],
  config = {},
  env = {},
  within = [],
  issuer = testIssuer(),
}: GatewaySetup): Promise<GatewayProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const files = {
    'pub.pem': String(issuer.signer.publicKey.key.export({ type: 'spki', format: 'pem' })),
    'policies.json': policyFile(denied),
    'upstreams.json': JSON.stringify(upstreamsFile(servers)),
    'gateway.json': JSON.stringify({ ...gatewayFile(dir), ...config }),
  }
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(dir, name), text)))
  const scope = [...Object.keys(servers).map((name) => `tools:${name}`), ...scopes].join(' ')
  const [program = '', ...args] = [...within, process.execPath, BIN, '-config', join(dir, 'gateway.json')]
  const child = spawn(program, args, {
    env: { ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
    child.kill(signal)
    await ended
  }
  const close = async () => {
    await end('SIGTERM')
    await rm(dir, { recursive: true, force: true })
  }
  try {
    const lines = linesOf(child)
    const { url, adminUrl } = await lines.addresses
    const ledger = async () => wholeLines(join(dir, 'audit.jsonl'))
    const { complaints } = lines
    const { pid = 0 } = child
    const token = issuer.token({ scope })
    return {
      url,
      adminUrl,
      token,
      issuer,
      pid,
      complaints: () => complaints,
      ledger,
      kill: () => end('SIGKILL'),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Environment for each plat process of a test: the test's own without plat variables. */
export function inherited(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS = '' } = process.env
  return { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS }
}

/** Reads the log to its end: where the gateway listens, or what it said when it ended before, and its complaints. */
function linesOf({ stdout, stderr }: { stdout: Readable; stderr: Readable }) {
  const complaints: string[] = []
  const complain = (line: string) => {
    if (complaints.length < MAX_COMPLAINTS) complaints.push(line)
  }
  const lines: string[] = []
  let listening = false
  const addresses = new Promise<{ url: string; adminUrl: string }>((resolve, reject) => {
    createInterface({ input: stderr }).on('line', complain)
    createInterface({ input: stdout })
      .on('line', (line) => {
        if (line.startsWith('{"level":"error"')) complain(line)
        if (listening) return
        lines.push(line)
        const [, url, adminUrl] =
          /"url":"(http:[^"]+)","adminUrl":"([^"]+)".*"the gateway is listening"/.exec(line) ?? []
        if (url === undefined || adminUrl === undefined) return
        listening = true
        resolve({ url, adminUrl })
      })
      .on('close', () => reject(new Error(`the gateway did not start:\n${[...lines, ...complaints].join('\n')}`)))
  })
  return { addresses, complaints }
}

function gatewayFile(dir: string) {
  return {
    listen: '127.0.0.1:0',
    identity: { publicKeyFiles: [join(dir, 'pub.pem')], issuer: TEST_ISSUER },
    policyFile: join(dir, 'policies.json'),
    upstreamsFile: join(dir, 'upstreams.json'),
    auditPath: join(dir, 'audit.jsonl'),
    auditFailurePolicy: 'closed',
    // Calls that need an approval wait until the test decides, however slow the machine is.
    approvalAnswerAfterSeconds: 600,
  }
}

function policyFile(denied: readonly string[]): string {
  const deny = { name: 'denied', action: 'deny', match: { tools: [...denied] }, reason: 'denied by the test' }
  const rules = [...(denied.length === 0 ? [] : [deny]), { name: 'all', action: 'allow' }]
  return policiesFile([testPolicy({ name: 'default/assistant', rules })])
}

function upstreamsFile(servers: Readonly<Record<string, string>>) {
  const fixed = { namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth: { type: 'none' } }
  const entries = Object.entries(servers).map(([name, url]) => [`default/${name}`, { url, ...fixed }])
  return { version: 1, servers: Object.fromEntries(entries), bindings: {}, agentWeb: {} }
}
