import { systemClock } from '@plat/core'
import { ephemeralSigner, readPublicKeys } from '@plat/keys'
import { readAuthority, readLicense } from '@plat/license'
import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { decodeClaims } from './claims.ts'
import { createProofVerifier } from './dpop/proof.ts'
import { memoryReplayStore } from './dpop/replay.ts'
import { readJwks } from './jwks-source.ts'
import { MAX_TOKEN_CHARS, parseCompact, parseJws, signJws } from './jws.ts'

const KIB = 1024
const MIB = 1024 * KIB
const count = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at))

const signer = ephemeralSigner()
const token: Families = {
  dots: (n) => '.'.repeat(n),
  header: (n) => `${Buffer.from(`{"alg":"ES256","kid":"${'a'.repeat(n / 2)}"}`).toString('base64url')}.e30.AA`,
  members: (n) => signJws(signer, {}, Object.fromEntries(count(n / 2, 12, (at) => `m${at}`).map((name) => [name, 1]))),
  nesting: (n) => `${Buffer.from('{"a":'.repeat(n / 8)).toString('base64url')}.e30.AA`,
  base64: (n) => `${'QUJD'.repeat(n / 4)}.e30.AA`,
}
const proofs = createProofVerifier({ clock: systemClock, replays: memoryReplayStore(systemClock) })
const { x } = JSON.parse(JSON.stringify(signer.publicJwk))
const claims = (n: number, members: string) =>
  `{"iss":"a","sub":"spiffe://a/ns/b/agent/c/session/d","aud":["x"],"exp":1,${members}}`.slice(0, 10 * n)

const rows: readonly Row[] = [
  { parser: 'JWS', limit: MAX_TOKEN_CHARS, families: token, run: (input) => [parseJws(input), parseCompact(input)] },
  {
    parser: 'DPoP',
    limit: 16 * KIB,
    families: token,
    run: (input) =>
      proofs.check({
        headers: [input],
        method: 'POST',
        url: `https://a.example/${'a/../'.repeat(100)}`,
        accessToken: input,
        ath: 'optional',
      }),
  },
  {
    parser: 'key sets',
    limit: MIB,
    families: {
      ...json,
      keys: (n) =>
        `{"keys":[${count(n, 90, () => `{"kty":"OKP","crv":"Ed25519","x":"${x}"}`)
          .slice(0, 1024)
          .join(',')}]}`,
    },
    run: (input) => readJwks(Buffer.from(input)),
  },
  {
    parser: 'session claims',
    limit: MAX_TOKEN_CHARS,
    families: {
      actors: (n) => claims(n, `"act":${'{"sub":"a","act":'.repeat(n / 18)}{}${'}'.repeat(n / 18)}`),
      scopes: (n) => claims(n, `"scope":"${'a '.repeat(n / 2)}"`),
      lineage: (n) => claims(n, `"plat_lineage":[${'"a",'.repeat(n / 4)}"b"]`),
    },
    prepare: (input) => {
      const members = JSON.parse(input)
      return () => decodeClaims(members)
    },
  },
  {
    parser: 'public keys',
    limit: MIB,
    families: {
      ...text,
      begins: (n) => '-----BEGIN PUBLIC KEY-----'.repeat(n / 26),
      lines: (n) => `-----BEGIN PUBLIC KEY-----${'A\n'.repeat(n / 2)}`,
      blocks: (n) => '-----BEGIN A-----A-----END A-----'.repeat(n / 32),
    },
    run: (input) => readPublicKeys(input, 'a'),
  },
  {
    parser: 'licences',
    limit: 12 * KIB,
    families: token,
    run: (input) => readLicense(input, readAuthority(JSON.stringify(signer.publicJwk), 'a')),
  },
]

export const target = costTarget('cost/tokens', rows)
