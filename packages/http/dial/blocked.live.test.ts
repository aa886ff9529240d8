import assert from 'node:assert/strict'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type TestContext, test } from 'node:test'
import { silentLog } from '@plat/process'
import { listening } from '@plat/testkit/local'
import { createDialer, type Dialer, type DialerOptions, type DialOptions } from './dialer.ts'
import { dialFault } from './errors.ts'
import { addressPolicies, type Purpose } from './purpose.ts'

/** Starts an HTTP server on one address that counts accepted connections. */
async function listenOn(t: TestContext, address: string, port: number, answer: RequestListener) {
  const server: Server = createServer(answer)
  let accepted = 0
  server.on('connection', () => accepted++)
  const bound = await listening(server, address, port)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port: bound, accepted: () => accepted }
}

function dialerOf(t: TestContext, options: Partial<DialerOptions>): Dialer {
  const dialer = createDialer({ log: silentLog, ...options })
  t.after(() => dialer.close())
  return dialer
}

const at = (address: string) => ({ address, family: address.includes(':') ? 6 : 4 })

/** Performs a request; resolves with its status, or the reason for its failure. */
type RequestOutcome = (dialer: Dialer, url: URL, purpose: Purpose, options?: DialOptions) => Promise<string>

/** Over a new connection, through the client used for calls. */
const byClient: RequestOutcome = (dialer, url, purpose, options) =>
  new Promise((resolve) => {
    let status = 0
    const request = {
      method: 'GET',
      path: url.pathname,
      headers: { connection: 'close' },
      body: null,
      headersTimeoutMs: 0,
      pauseTimeoutMs: 0,
    }
    dialer.client(url, purpose, options).send(request, {
      onHead: (code) => {
        status = code
      },
      onData: () => {},
      onEnd: () => resolve(String(status)),
      onFailure: (error) => resolve(dialFault(error)),
    })
  })

/** With `fetchBytes`. */
const byFetch: RequestOutcome = (dialer, url, purpose, options) =>
  dialer
    .fetchBytes(url, purpose, { ...options, headers: { connection: 'close' }, maxBytes: 1000, timeoutMs: 60_000 })
    .then(({ status }) => String(status), dialFault)

const ways: readonly RequestOutcome[] = [byClient, byFetch]

const GOOD = '127.0.0.2'
const BLOCKED = ['127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::7f00:1', '::1']
const TRIALS = 10_000
/** Number of names resolved concurrently, each with its own resolver behavior. */
const LANES = 20

/** One trial: the first response of the resolver, and all later ones. */
const plans: readonly ((bad: string) => readonly [first: string[], later: string[]])[] = [
  (bad) => [[GOOD], [bad]],
  (bad) => [[GOOD], [GOOD, bad]],
  (bad) => [[bad], [GOOD]],
  (bad) => [[GOOD, bad], [GOOD]],
  (bad) => [[bad, GOOD], [bad]],
]

test('in 10,000 trials a resolver that changes its response between check and connect leads to no blocked address', async (t) => {
  const inside = await listenOn(t, '127.0.0.1', 0, (_request, response) => response.end('inside'))
  const outside = await listenOn(t, GOOD, inside.port, (_request, response) => response.end('outside'))
  const moods = new Map<string, { first: string[]; later: string[]; requested: number }>()
  const lookup = async (name: string) => {
    const mood = moods.get(name)
    assert.ok(mood !== undefined)
    return (mood.requested++ === 0 ? mood.first : mood.later).map(at)
  }
  const dialer = dialerOf(t, { lookup, allowedCIDRs: [`${GOOD}/32`] })
  const seen = new Map<string, number>()
  const lane = async (from: number) => {
    const name = `lane-${from}.example`
    for (let trial = from; trial < TRIALS; trial += LANES) {
      const round = Math.floor(trial / LANES)
      const plan = plans[round % plans.length]
      const ask = round % 2 === 0 ? byClient : byFetch
      assert.ok(plan !== undefined)
      const [first, later] = plan(BLOCKED[trial % BLOCKED.length] ?? '')
      const mood = { first, later, requested: 0 }
      moods.set(name, mood)
      const end = await ask(dialer, new URL(`http://${name}:${inside.port}/`), 'web')
      assert.equal(mood.requested, 1)
      seen.set(end, (seen.get(end) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, from) => lane(from)))
  assert.equal(inside.accepted(), 0)
  // Two plans of five reach the checked address, and three are refused.
  assert.deepEqual([seen.get('200'), seen.get('blocked'), seen.size], [(TRIALS * 2) / 5, (TRIALS * 3) / 5, 2])
  assert.equal(outside.accepted(), (TRIALS * 2) / 5)
})

test('no client follows a redirect; its target is checked when it is requested', async (t) => {
  const target = await listenOn(t, '127.0.0.1', 0, (_request, response) => response.end('secret'))
  const location = `http://127.0.0.1:${target.port}/secret`
  const redirects = await listenOn(t, GOOD, 0, (request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { location }).end()
  })
  const dialer = dialerOf(t, { allowedCIDRs: [`${GOOD}/32`] })
  for (const ask of ways) {
    for (const status of ['301', '302', '303', '307', '308']) {
      assert.equal(await ask(dialer, new URL(`http://${GOOD}:${redirects.port}/${status}`), 'web'), status)
    }
    assert.equal(await ask(dialer, new URL(location), 'web'), 'blocked')
  }
  assert.equal(target.accepted(), 0)
})

/** Spellings of 127.0.0.1 used by attackers; URL parsing normalizes each or rejects it. */
const spellings =
  `127.1 127.0.1 127.0.0.1. 0177.0.0.1 017700000001 0x7f.1 0x7f000001 2130706433 127.0.0.1%2e %31%32%37.0.0.1
  127。0。0。1 １２７.0.0.1 ①②⑦.0.0.1 [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:0001] [::127.0.0.1] [::1]
  [64:ff9b::7f00:1] localhost localhost. LOCALHOST user@127.0.0.1 8.8.8.8@127.0.0.1`.split(/\s+/)
const noURLs = `[::1%25lo] [fe80::1%25eth0] [::ffff:0x7f.1] 256.0.0.1 127.0.0.08 1.2.3.4.5 [127.0.0.1]`.split(/\s+/)

test('no spelling of a blocked address is connected to, with any client and for any purpose of agents', async (t) => {
  const server = await listenOn(t, '127.0.0.1', 0, (_request, response) => response.end())
  const dialer = dialerOf(t, { lookup: async () => [at('::1'), at('127.0.0.1')] })
  const forAgents: readonly Purpose[] = ['web', 'egress', 'push', 'card']
  for (const purpose of forAgents) {
    assert.equal(addressPolicies[purpose], 'public')
    for (const ask of ways) {
      for (const host of spellings) {
        const url = new URL(`http://${host}:${server.port}/`)
        assert.equal(await ask(dialer, url, purpose), 'blocked', host)
      }
    }
  }
  for (const host of noURLs) assert.throws(() => dialer.client(`http://${host}/`, 'web'), TypeError, host)
  assert.equal(server.accepted(), 0)
})

test('a scope or another spelling in a resolver response does not bypass the check', async (t) => {
  const server = await listenOn(t, '127.0.0.1', 0, (_request, response) => response.end())
  let answer = ''
  const dialer = dialerOf(t, { lookup: async () => [{ address: answer, family: 6 }] })
  for (answer of ['::1%lo', 'fe80::1%eth0', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '']) {
    for (const ask of ways) {
      const url = new URL(`http://odd.example:${server.port}/`)
      assert.equal(await ask(dialer, url, 'web'), 'blocked', answer)
    }
  }
  assert.equal(server.accepted(), 0)
})

test('an address outside the residency rules is refused before a connection, as a name or as a literal', async (t) => {
  const server = await listenOn(t, '127.0.0.1', 0, (_request, response) => response.end())
  const dialer = dialerOf(t, { lookup: async () => [at('127.0.0.1')] })
  const requested: string[] = []
  const residency = (mark: string, admitted: boolean) => ({
    residency: {
      mark,
      admits: (address: string) => {
        requested.push(address)
        return admitted
      },
    },
  })
  for (const ask of ways) {
    for (const host of ['tools.example', '127.0.0.1']) {
      const url = new URL(`http://${host}:${server.port}/`)
      assert.equal(await ask(dialer, url, 'mcp', residency('eu', false)), 'residency')
    }
  }
  assert.equal(server.accepted(), 0)
  assert.deepEqual(new Set(requested), new Set(['127.0.0.1']))
  // A pooled connection opened under weaker rules is not used under stricter ones.
  for (const ask of ways) {
    const url = new URL(`http://tools.example:${server.port}/`)
    assert.equal(await ask(dialer, url, 'mcp', residency('any', true)), '200')
    assert.equal(await ask(dialer, url, 'mcp', residency('us', false)), 'residency')
    assert.equal(await ask(dialer, url, 'mcp'), '200')
  }
  // The residency check is not called for addresses that the address policy forbids.
  requested.length = 0
  assert.equal(await byFetch(dialer, new URL('http://169.254.169.254/'), 'mcp', residency('any', true)), 'blocked')
  assert.deepEqual(requested, [])
})
