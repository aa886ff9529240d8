import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type FlagTable, parseFlags } from '@plat/config'
import { withOpenAI } from './openai.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const plat = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))

const flags = {
  dir: { type: 'string', default: here, help: 'the folder that npm start governs' },
  model: {
    type: 'string',
    default: 'scripted',
    oneOf: ['scripted', 'openai'],
    help: 'openai uses the account of OPENAI_API_KEY; the key stays with the gateway',
  },
} as const satisfies FlagTable

/** How often the demo looks whether the agent waits for somebody, in milliseconds. */
const LOOK_EVERY_MS = 300

/** As wide as the labels of agent.ts. */
const LABEL_WIDTH = 30

/** `npm run demo`: the example agent under `plat run`, somebody who approves, and the proof that the ledger holds what was done. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, argv, 'npm run demo --')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  const { dir, model } = parsed.values
  if ((await readFile(path.join(dir, '.plat/env'), 'utf8').catch(() => null)) === null) {
    console.error('plat is not running: start it with npm start in another terminal')
    return 1
  }
  const agent =
    model === 'openai' ? await withOpenAI(dir, (name) => runAgent(name, dir)) : await runAgent('assistant', dir)
  if (agent !== 0) return agent
  console.log('\nWhat it cost:\n')
  await runPlat('costs', '-dir', dir)
  console.log('\nWhat the ledger says:\n')
  await runPlat('audit', 'tail', '-dir', dir, '-n', '8')
  console.log('')
  return runPlat('audit', 'verify', '-dir', dir)
}

async function runAgent(name: string, dir: string): Promise<number> {
  const agent = start('inherit', 'run', name, '-dir', dir, '--', process.execPath, `${here}agent.ts`)
  const ended = once(agent, 'exit')
  while (agent.exitCode === null && agent.signalCode === null) {
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))])
    await approveWhatWaits(dir)
  }
  return agent.exitCode ?? 1
}

/** Plays the approver; a decision in `plat approvals watch` may come first. */
async function approveWhatWaits(dir: string): Promise<void> {
  const list = start('pipe', 'approvals', 'list', '-dir', dir, '-o', 'json')
  let text = ''
  list.stdout?.on('data', (chunk: Buffer) => {
    text += chunk
  })
  await once(list, 'close')
  for (const { id, tool, preview } of waiting(text)) {
    console.log(`  ${'you approve'.padEnd(LABEL_WIDTH)} -> ${tool} ${preview} (plat approvals approve)`)
    await once(start('ignore', 'approvals', 'approve', id, '-dir', dir, '-reason', 'the demo says yes'), 'exit')
  }
}

interface Waiting {
  readonly id: string
  readonly tool: string
  readonly preview: string
}

function waiting(text: string): readonly Waiting[] {
  const value: unknown = JSON.parse(text || '[]')
  const items: unknown = Array.isArray(value) ? value : Object(value).items
  if (!Array.isArray(items)) return []
  return items.map((item) => ({ id: String(item.id), tool: String(item.tool), preview: String(item.preview?.text) }))
}

async function runPlat(...args: string[]): Promise<number> {
  const [code] = await once(start('inherit', ...args), 'exit')
  return code ?? 1
}

function start(stdio: 'inherit' | 'pipe' | 'ignore', ...args: string[]): ChildProcess {
  return spawn(process.execPath, [plat, ...args], { stdio: stdio === 'pipe' ? ['ignore', 'pipe', 'inherit'] : stdio })
}
