import { systemClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json } from '../../../../test/fuzz/families.ts'
import { Cards } from './card/cards.ts'
import { RemoteCards } from './card/remote.ts'
import { buildAgents } from './registry.ts'

/** Largest card of an agent, in bytes. */
const CARD = 256 * 1024

const card = (members: object) =>
  JSON.stringify({
    supportedInterfaces: [{ protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    ...{ capabilities: {}, defaultInputModes: ['a'], defaultOutputModes: ['a'] },
    ...members,
  })
const list = (n: number, element: object | string) => Array(Math.ceil(n / JSON.stringify(element).length)).fill(element)

const cards: Families = {
  ...json,
  extensions: (n) => card({ capabilities: { extensions: list(n, { uri: 'https://a.example' }) } }),
  'long extensions': (n) =>
    card({ capabilities: { extensions: list(n, { uri: 'a'.repeat(1000), description: '"'.repeat(2000) }) } }),
  modes: (n) => card({ defaultInputModes: list(n, 'a') }),
  'long modes': (n) => card({ defaultOutputModes: ['a'.repeat(n)] }),
  interfaces: (n) => card({ supportedInterfaces: list(n, { protocolBinding: 'JSONRPC', protocolVersion: '0' }) }),
  'long versions': (n) => card({ protocolVersion: '0.3.'.repeat(n / 4) }),
  transports: (n) => card({ supportedInterfaces: [], additionalInterfaces: list(n, { transport: 'a' }) }),
  'members that are not used': (n) => card({ skills: list(n, { id: 'a', name: 'a', tags: ['a'] }) }),
}

const row = (protocolVersion: '1.0' | '0.3'): Row => ({
  parser: 'agent cards',
  part: protocolVersion,
  limit: CARD,
  families: cards,
  prepare(input) {
    const bytes = Buffer.from(input)
    const entry = {
      endpoint: 'http://h.example/rpc',
      allowedCallers: [],
      skills: [],
      streaming: true,
      version: '2.0.0',
    }
    const agents = { 'default/helper': { ...entry, trust: 'trusted' as const, protocolVersion } }
    const agent = buildAgents({ version: 1, agents }).agent('a2a/default/helper')
    return async () => {
      if (agent === null) throw new Error('no agent')
      const dialer = { fetchBytes: async () => ({ status: 200, headers: {}, bytes }) }
      const remote = new RemoteCards({ dialer, extraCA: null, cacheMs: 1, clock: systemClock, log: silentLog })
      const shared = { signer: null, publicURL: null, scheme: 'http' as const, pushes: true, isPublic: true }
      const own = new Cards({ ...shared, remote, cacheSeconds: 300, log: silentLog })
      return await own.answer(agent, { host: 'h.example', ifNoneMatch: undefined, version: protocolVersion })
    }
  },
})

export const target = costTarget('cost/gateway agent cards', [row('1.0'), row('0.3')])
