import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { startLegacyAgent } from '@plat/testkit/a2a-agent-03'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startPrinting } from '@plat/testkit/processes/cargo'
import { pythonWith } from '@plat/testkit/processes/python'
import { casesOf } from './cases.ts'
import { isReplying, type Pairing, reasonToDiffer, requiredCodes } from './differences.ts'
import { type Case, type Target, verdictOf, withoutIdentity } from './target.ts'

const execute = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

/** Maximum time of a client on the slowest machine, in milliseconds. */
const CLIENT_MS = 60_000

const python = await pythonWith(here('requirements.txt'))
const python03 = await pythonWith(here('requirements-03.txt'))
const skip = 'missing' in python ? python.missing : 'missing' in python03 ? python03.missing : false
const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())

/** Starts the agents, and a gateway before them. */
async function startAll() {
  assert.ok('path' in python && 'path' in python03)
  const agents = {
    python: await startPrinting(python.path, [here('agent.py')]),
    'python-03': await startPrinting(python03.path, [here('agent_03.py')]),
    typescript: await startTestAgent(),
    'typescript-03': await startLegacyAgent(),
  }
  for (const agent of Object.values(agents)) stack.defer(() => agent.close())
  const routes = Object.entries(agents).map(([name, { url }]) => [
    `default/${name}`,
    {
      endpoint: url,
      protocolVersion: name.endsWith('-03') ? '0.3' : '1.0',
      allowedCallers: [],
      skills: [],
      streaming: true,
      trust: 'trusted',
      version: '1.0.0',
    },
  ])
  const routesFile = path.join(tempFolder(), 'agents.json')
  writeFileSync(routesFile, JSON.stringify({ version: 1, agents: Object.fromEntries(routes) }))
  const scopes = Object.keys(agents).map((name) => `agents:${name}`)
  const config = { a2a: { routesFile, pushNotificationHosts: ['hooks.example'] } }
  const gateway = stack.adopt(await startGatewayProcess({ servers: {}, scopes, config }), (it) => it.close())
  return {
    direct: ({ agent, version }: Pairing): Target => ({ url: agents[agent].url, version, headers: {} }),
    governed: ({ agent, version }: Pairing): Target => ({
      url: `${gateway.url}/a2a/default/${agent}`,
      version,
      headers: { authorization: `Bearer ${gateway.token}` },
    }),
    token: gateway.token,
  }
}

const all = skip === false ? await startAll() : null

/** Resolves to the verdict of a case, or to the reason why it has none. */
async function judged(one: Case, target: Target): Promise<string> {
  try {
    return verdictOf(await one(target), target.version)
  } catch (error) {
    return `no reply: ${String(error)}`
  }
}

const PAIRINGS: readonly Pairing[] = [
  { agent: 'python', version: '1.0' },
  { agent: 'typescript', version: '1.0' },
  { agent: 'python', version: '0.3' },
  { agent: 'python-03', version: '0.3' },
  { agent: 'typescript-03', version: '0.3' },
]

describe('verdicts through the gateway are those of the agent alone', { skip }, () => {
  for (const pairing of PAIRINGS)
    test(`an agent of the SDK for ${pairing.agent}, called in ${pairing.version}`, async (t) => {
      assert.ok(all !== null)
      const differing: string[] = []
      let same = 0
      for (const [title, one] of Object.entries(casesOf(pairing.version))) {
        if (!isReplying(title, pairing)) continue
        const [alone, governed] = [await judged(one, all.direct(pairing)), await judged(one, all.governed(pairing))]
        const codes = requiredCodes(title)
        const isAsRequired = codes?.some((code) => new RegExp(`"code":${code}[,}]`).test(governed)) === true
        if (alone === governed && !alone.startsWith('no reply')) same++
        else if (!isAsRequired && reasonToDiffer(title, pairing) === null)
          differing.push(`${title}\n  alone:    ${alone}\n  governed: ${governed}`)
      }
      assert.deepEqual(differing, [], differing.join('\n'))
      t.diagnostic(`${same} cases with the same replies`)
    })
})

const CLIENTS: readonly (readonly [script: string, pairing: Pairing])[] = [
  ['client.py', { agent: 'python', version: '1.0' }],
  ['client_03.py', { agent: 'python-03', version: '0.3' }],
]

describe('official clients receive the same through the gateway', { skip }, () => {
  for (const [script, pairing] of CLIENTS)
    test(`${script}: calls every method that it has`, async () => {
      assert.ok(all !== null && 'path' in python && 'path' in python03)
      const interpreter = pairing.version === '1.0' ? python.path : python03.path
      const run = async ({ url }: Target) => {
        const base = url.endsWith('/') ? url : `${url}/`
        const { stdout } = await execute(interpreter, [here(script), base, all.token], { timeout: CLIENT_MS })
        return withoutIdentity(JSON.parse(stdout))
      }
      const alone = await run(all.direct(pairing))
      assert.match(alone, /"unknown":"(?:TaskNotFound|JSONRPC)Error"/)
      assert.equal(await run(all.governed(pairing)), alone)
    })
})
