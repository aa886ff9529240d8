import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { type Client, PAGES, type Runtime, SDK_CLIENTS, type SdkClient } from './clients.ts'
import { Matrix } from './matrix.ts'
import { readPage, type Way } from './page.ts'
import { isWaiting, ONE_ADDRESS, oneAddressSteps, SERVERS, type Step } from './scenario.ts'
import { runScript, startEnvironment } from './world.ts'

/** In `npm run long` also clients that take minutes to install or compile. */
const IS_LONG = process.env.PLAT_TEST_ALL_AGENTS === '1'
/** Most of a run is waiting for approvals, in `npm run long` for a minute. */
const CONCURRENCY = IS_LONG ? 10 : 4
/** Time after which calls are approved, in milliseconds; by default longer than any client waits: openai-agents gives up after five seconds. */
const APPROVAL_MS = IS_LONG ? 60_000 : 6000

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const world = await startEnvironment(stack, APPROVAL_MS)
const skip = 'missing' in world ? world.missing : false
const matrix = new Matrix('missing' in world ? [] : world.steps)

function assertRead(texts: readonly string[], steps: readonly Step[]): void {
  assert.equal(texts.length, steps.length, JSON.stringify(texts, null, 2))
  for (const [at, { tool, reads }] of steps.entries()) assert.match(texts[at] ?? '', reads, tool)
}

/** Returns the script of a client that runs `command`: with the servers of `plat run`, or with addresses and a token. */
function scriptOf({ name, command }: SdkClient, way: Way): string {
  if (way === 'Under plat run')
    return `npx --no plat run assistant -- sh -c '${command} "$PLAT_MCP_CONFIG" < steps.json'`
  const session = `${name} ${way}`.toLowerCase().replace(/\W+/g, '-')
  const configured = readPage('README.md', SERVERS).script(way, '')
  return `${configured}\n${command} mcp.json < steps.json`.replaceAll(
    'mint assistant',
    `mint assistant -session ${session}`,
  )
}

/** Installs what a client runs on when its first test begins: a test chosen by its name does not wait for the packages of others. */
function installedOnce(client: Client): () => Promise<Runtime> {
  let runtime: Promise<Runtime> | undefined
  return () => {
    runtime ??= client.runtime(IS_LONG)
    return runtime
  }
}

describe('clients read every refusal', { concurrency: CONCURRENCY, skip }, () => {
  for (const client of SDK_CLIENTS) {
    const runtimeOf = installedOnce(client)
    for (const way of client.ways)
      test(`${client.name}: ${way.toLowerCase()} each call returns its result or its refusal`, async (t) => {
        assert.ok(!('missing' in world))
        const runsOn = await runtimeOf()
        if ('missing' in runsOn) return t.skip(runsOn.missing)
        const [, file = ''] = client.command.split(' ')
        const own = file === '' ? {} : { [file]: readFileSync(path.join(import.meta.dirname, 'clients', file), 'utf8') }
        const steps = way === ONE_ADDRESS ? oneAddressSteps(world.steps) : world.steps
        const files = { ...own, 'steps.json': JSON.stringify(steps) }
        const texts: string[] = JSON.parse(await runScript(world, { ...runsOn, files, script: scriptOf(client, way) }))
        matrix.add(client, way, texts)
        assertRead(texts, steps)
      })
  }

  let runs = 0
  for (const client of PAGES) {
    const runtimeOf = installedOnce(client)
    for (const way of client.ways)
      test(`${client.name}: ${way.toLowerCase()} the model reads every refusal`, async (t) => {
        assert.ok(!('missing' in world))
        const runsOn = await runtimeOf()
        if ('missing' in runsOn) return t.skip(runsOn.missing)
        const id = `run-${++runs}`
        const page = readPage(client.page, SERVERS, client.variant)
        const agent = client.agent ?? 'assistant'
        const script = page
          .script(way, `Task ${id}`)
          .replaceAll('assistant', agent)
          .replaceAll(`mint ${agent}`, `mint ${agent} -session ${id}`)
        const printed = await runScript(world, { ...runsOn, files: page.files, script })
        const texts = world.model.read(id)
        const ends = texts.filter((text) => !isWaiting(text))
        matrix.add(client, way, ends)
        assert.match(printed, new RegExp(`finished ${id}`), JSON.stringify(texts, null, 2))
        assertRead(ends, world.steps)
      })
  }
})

test('the cases that each client read are printed', { skip }, (t) => {
  t.diagnostic(`approvals after ${APPROVAL_MS / 1000} s\n${matrix.text}`)
})
