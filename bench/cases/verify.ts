import type { LocalSigner } from '@plat/keys'
import { postBytes } from '../harness/client.ts'
import { cpuPerRequest, type Traffic } from '../harness/load.ts'
import { BROKER_TOKEN, makeKeys, sessionToken, startIdentity, startOwn, withServers } from '../harness/plat.ts'
import { type BenchCase, row } from '../harness/report.ts'

/** Tokens that a cold run cycles through: more than a verifier caches, so that none is verified from the cache. */
const COLD_TOKENS = 30_000

/** `POST /v1/token/verify` cold (each token is new) and cached (one token), against a bare verification of the same tokens. */
export const verify: BenchCase = {
  name: 'verify',
  async run({ dir, effort }) {
    const keys = await makeKeys(dir)
    const cold = verifyTraffic(keys.signer, COLD_TOKENS)
    const warm = verifyTraffic(keys.signer, 1)
    const cpu = await withServers(async (keep) => {
      const floor = await keep(startOwn(dir, 'bare-broker.ts', keys.keyPath))
      const ours = await keep(startIdentity(dir, keys))
      return cpuPerRequest(
        {
          floor: { server: floor, traffic: cold },
          cold: { server: ours, traffic: cold },
          cached: { server: ours, traffic: warm },
        },
        effort,
      )
    })
    const rate = (name: 'floor' | 'cold' | 'cached') => (1000 / cpu.micros(name)).toFixed(2)
    const figures = `cold ${rate('cold')} k/s per core, bare ${rate('floor')}, cached ${rate('cached')}`
    return [
      row({
        what: 'verifications over bare, cold',
        value: cpu.over('floor', 'cold'),
        unit: '×',
        target: ['≥', 0.85],
        detail: figures,
      }),
      row({ what: 'cached over cold', value: cpu.over('cold', 'cached'), unit: '×', target: ['≥', 1.5], detail: '' }),
    ]
  },
}

function verifyTraffic(signer: LocalSigner, tokens: number): Traffic {
  const headers = { authorization: `Bearer ${BROKER_TOKEN}`, 'content-type': 'application/json' }
  const requests = Array.from({ length: tokens }, () =>
    postBytes('/v1/token/verify', headers, JSON.stringify({ token: sessionToken(signer) })),
  )
  const first = requests[0] ?? Buffer.alloc(0)
  return {
    request: (n) => requests[n % tokens] ?? first,
    isRight: ({ status, body }) => status === 200 && body.includes('"valid":true'),
  }
}
