/** plat with the three servers of the scenario, its model, an approver, and a folder for each run of a program. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { tempFolder } from '@plat/testkit/local'
import { startEverything } from '@plat/testkit/mcp/everything'
import { npmPackage } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import { type Plat, start } from '../plat.ts'
import { GATEWAY_URL } from './page.ts'
import { GATEWAY, isDenied, NOTE, PRICES, RULES, SERVERS, type Step, stepsIn } from './scenario.ts'
import { type ScriptedModel, startScriptedModel } from './scripted-model.ts'

const COMMAND = fileURLToPath(new URL('../../../apps/cli/bin/plat.mjs', import.meta.url))
const COUNTER = fileURLToPath(new URL('../stdio/fastmcp_server.py', import.meta.url))

/** Time after which calls are denied, in milliseconds. */
const DENIAL_MS = 6000
const POLL_MS = 250
/** Part of the time until an approval after which the model repeats a call that waits. */
const MODEL_PAUSE = 1 / 3
/** Maximum time of a program on the slowest machine, in milliseconds. */
const PROGRAM_MS = 300_000

export interface Environment {
  readonly plat: Plat
  readonly steps: readonly Step[]
  readonly model: ScriptedModel
}

/** Starts everything, with an approver who approves calls after `approvalMs`, or returns what is missing. `stack` ends it. */
export async function startEnvironment(
  stack: AsyncDisposableStack,
  approvalMs: number,
): Promise<Environment | { readonly missing: string }> {
  const filesystem = await npmPackage('@modelcontextprotocol/server-filesystem', '2026.8.31')
  if ('missing' in filesystem) return filesystem
  const python = await pythonWith(path.join(path.dirname(COUNTER), 'requirements.txt'))
  if ('missing' in python) return python
  const data = tempFolder()
  writeFileSync(path.join(data, 'note.txt'), NOTE)
  const steps = stepsIn(data)
  const model = stack.adopt(await startScriptedModel(steps, approvalMs * MODEL_PAUSE), (it) => it.close())
  const everything = stack.adopt(await startEverything(), (it) => it.close())
  const files = { command: process.execPath, args: [path.join(filesystem.folder, 'dist/index.js'), data] }
  const counter = { command: python.path, args: [COUNTER] }
  const plat = stack.use(
    await start({
      rules: RULES,
      tools: SERVERS,
      model: `adapter: anthropic\nendpoint: ${model.url}`,
      gateway: GATEWAY,
      prices: PRICES,
      // One process for all runs: each starts in a second, and is tested with sessions elsewhere.
      resources: {
        'Agent/coder': JSON.stringify({
          policyRef: 'assistant',
          tools: SERVERS.map((name) => ({ name })),
          model: { endpoint: model.url },
        }),
        'MCPServer/everything': JSON.stringify({ url: everything.url }),
        'MCPServer/files': JSON.stringify({ stdio: { ...files, perSession: false } }),
        'MCPServer/counter': JSON.stringify({ stdio: { ...counter, perSession: false } }),
      },
    }),
  )
  const end = new AbortController()
  const decided = decideApprovals(plat, { approvalMs, signal: end.signal })
  stack.defer(async () => {
    end.abort()
    await decided
  })
  return { plat, steps, model }
}

interface Approval {
  readonly id: string
  readonly preview?: unknown
}

/** Approves every call that has waited for `approvalMs`, and denies those of the scenario that are to be denied. */
async function decideApprovals(
  { env }: Plat,
  { approvalMs, signal }: { readonly approvalMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const seen = new Map<string, number>()
  const headers = { authorization: `Bearer ${env.PLAT_ADMIN_TOKEN}`, 'content-type': 'application/json' }
  while (!signal.aborted) {
    const response = await fetch(`${env.PLAT_ADMIN_URL}/v1/approvals?state=pending`, { headers })
    const { items }: { items: readonly Approval[] } = JSON.parse(await response.text())
    for (const { id, preview } of items) {
      if (!seen.has(id)) seen.set(id, performance.now())
      const denied = isDenied(JSON.stringify(preview))
      if (performance.now() - (seen.get(id) ?? 0) < (denied ? DENIAL_MS : approvalMs)) continue
      const [verdict, reason] = denied ? ['deny', 'bad luck'] : ['approve', 'fine']
      const body = JSON.stringify({ reason })
      await fetch(`${env.PLAT_ADMIN_URL}/v1/approvals/${id}/${verdict}`, { method: 'POST', headers, body })
    }
    await sleep(POLL_MS)
  }
}

export interface Program {
  /** Files of the folder of the run. */
  readonly files: Readonly<Record<string, string>>
  /** Commands that the script finds, with their programs. */
  readonly commands: Readonly<Record<string, string>>
  /** `node_modules` of the folder. */
  readonly modules?: string | undefined
  readonly script: string
}

/** Runs a shell script beside the running plat, as a user in an empty folder would. Resolves to its output. */
export async function runScript({ plat }: Environment, program: Program): Promise<string> {
  const folder = mkdtempSync(path.join(plat.dir, 'run-'))
  const bin = path.join(folder, 'bin')
  mkdirSync(bin)
  const commands = { node: process.execPath, ...program.commands }
  // Not links: a Python finds its packages beside its path.
  for (const [name, target] of Object.entries(commands)) writeCommand(bin, name, `exec ${target} "$@"`)
  // `npx --no plat` of the pages, without a second for npx to find the command.
  writeCommand(bin, 'npx', `shift 2\nexec node ${COMMAND} "$@"`)
  for (const [name, text] of Object.entries(program.files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), text)
  }
  if (program.modules !== undefined) symlinkSync(program.modules, path.join(folder, 'node_modules'))
  const script = program.script.replaceAll(GATEWAY_URL, plat.env.PLAT_GATEWAY_URL ?? '')
  const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: folder, LC_ALL: 'C.UTF-8' }
  return await new Promise((resolve, reject) => {
    const options = { cwd: folder, env, timeout: PROGRAM_MS, maxBuffer: 2 ** 26 }
    const child = execFile('/bin/sh', ['-ec', script], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${error.message}\n${stdout}\n${stderr}`))
    })
    child.stdin?.end()
  })
}

function writeCommand(folder: string, name: string, script: string): void {
  writeFileSync(path.join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}
