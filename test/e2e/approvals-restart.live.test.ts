import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { startUp, type Up } from '@plat/cli'
import { wholeLines } from '@plat/testkit/ledger'
import { denialIn } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

const CALLS = Number(process.env.PLAT_TEST_HELD_CALLS ?? 200)
const SESSIONS = 20
/** Concurrent requests of the test. */
const AT_ONCE = 50

/** A directory whose one agent needs an approval for everything. */
async function directory(url: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const put = async (plural: string, kind: string, spec: object) => {
    const file = join(dir, 'resources', plural, 'default', 'a.yaml')
    await mkdir(dirname(file), { recursive: true })
    const metadata = { name: 'a', namespace: 'default' }
    await writeFile(file, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
  }
  await put('mcpservers', 'MCPServer', { url })
  await put('agents', 'Agent', { image: 'x/a:1', tier: 'tier-0', policyRef: 'a', tools: [{ name: 'a' }] })
  await put('toolpolicies', 'ToolPolicy', { rules: [{ name: 'ask', action: 'require_approval' }] })
  await writeFile(
    join(dir, 'gateway.json'),
    JSON.stringify({ shutdownTimeoutSeconds: 1, approvalAnswerAfterSeconds: 600 }),
  )
  return dir
}

/** One run of plat in a test. */
class Run {
  readonly up: Up
  readonly #tokens: readonly string[]

  constructor(up: Up, tokens: readonly string[]) {
    this.up = up
    this.#tokens = tokens
  }

  static async start(dir: string): Promise<Run> {
    const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
    const mint = async (_: unknown, n: number) => {
      const { token } = await members(
        await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
          method: 'POST',
          headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            namespace: 'default',
            agent: 'a',
            session: `s${n}`,
            scopes: ['tools:a'],
            tier: 'tier-0',
          }),
        }),
      )
      return String(token)
    }
    return new Run(up, await Promise.all(Array.from({ length: SESSIONS }, mint)))
  }

  /** The call number `n`: always of the same session, with the same arguments. Answers its error code, or `done`. */
  async call(n: number, prefer = ''): Promise<string> {
    const params = { name: 'tool', arguments: { n } }
    const response = await fetch(`${this.up.env.PLAT_GATEWAY_URL}/mcp/a`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#tokens[n % SESSIONS]}`,
        'content-type': 'application/json',
        // No event stream: the answer's head waits, so that what comes is the whole answer.
        accept: 'application/json',
        'mcp-protocol-version': '2025-11-25',
        ...(prefer !== '' && { prefer }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: n, method: 'tools/call', params }),
    })
    return String(denialIn(await members(response))?.data.error ?? 'done')
  }

  async api(method: string, path: string): Promise<Readonly<Record<string, unknown>>> {
    const headers = { authorization: `Bearer ${this.up.env.PLAT_ADMIN_TOKEN}` }
    return members(await fetch(this.up.env.PLAT_GATEWAY_URL + path, { method, headers }))
  }

  async ids(state: string): Promise<string[]> {
    const { items } = await this.api('GET', `/v1/approvals?state=${state}&limit=1000`)
    assert.ok(Array.isArray(items))
    return items.map((item) => String(item.id))
  }
}

async function members(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await response.json()
  return Object.fromEntries(Object.entries(body ?? {}))
}

/** Runs `job` for each item, `AT_ONCE` at a time. */
async function each<T>(items: readonly T[], job: (item: T) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(job))
}

function count(answers: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1
  return counts
}

test('calls held over a restart: none is lost, none passes twice, and each leaves one record', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))
  })
  const dir = await directory(upstream.url)
  let second: Run | null = null
  t.after(async () => {
    // A running process would write to the directory while it is removed.
    await second?.up.stop()
    await rm(dir, { recursive: true, force: true })
  })
  const numbers = Array.from({ length: CALLS }, (_, n) => n)

  const first = await Run.start(dir)
  const held = Promise.all(numbers.map((n) => first.call(n)))
  while ((await first.ids('pending')).length < CALLS) await new Promise((resolve) => setTimeout(resolve, 100))
  await first.up.stop()
  assert.deepEqual(count(await held), { state_unavailable: CALLS })

  second = await Run.start(dir)
  const waiting = await second.ids('pending')
  assert.equal(waiting.length, CALLS)
  await each(waiting, (id) => second.api('POST', `/v1/approvals/${id}/approve`))
  const answers: string[] = []
  await each(numbers, async (n) => answers.push(await second.call(n)))
  assert.deepEqual(count(answers), { done: CALLS })
  // The gateway requests the tool list in addition to the calls, to get the definitions.
  assert.equal(upstream.received.filter(({ body }) => body.includes('tools/call')).length, CALLS)
  assert.ok(upstream.received.length <= CALLS + 2, 'one list for each start')
  assert.equal((await second.ids('used')).length, CALLS)
  assert.equal(await second.call(0, 'wait=0'), 'approval_pending')

  const path = join(dir, '.plat/state/audit.jsonl')
  const records = () => wholeLines(path).map((line) => JSON.parse(line).rec)
  await until(() => records().some(({ code }) => code === 'approval_pending'), 'the record of the last call')
  const ends = records().filter((rec) => rec.kind === 'decision' || rec.kind === 'outcome')
  assert.equal(new Set(ends.map((rec) => rec.call)).size, ends.length)
  const kinds = count(ends.map((rec) => rec.code ?? rec.result))
  assert.deepEqual(kinds, { state_unavailable: CALLS, completed: CALLS, approval_pending: 1 })
})
