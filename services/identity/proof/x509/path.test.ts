import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthority, type Issued, keyUsage } from '@plat/testkit/authority'
import { type Certificate, readCertificate } from './certificate.ts'
import { type PathRules, verifyPath } from './path.ts'

const NOW = Date.UTC(2026, 0, 1)
const root = await createAuthority({ name: 'root', now: NOW })

const read = ({ der }: Issued): Certificate => readCertificate(der) ?? assert.fail('a certificate that cannot be read')

/** Returns the verdict on a leaf under `root` with these intermediates. */
function judge(leaf: Issued, above: readonly Issued[] = [], rules: Partial<PathRules> = {}): string {
  const intermediates = above.map(read)
  const verdict = verifyPath(read(leaf), { intermediates, anchors: [read(root)], now: NOW, ...rules })
  return verdict.kind === 'path' ? 'path' : verdict.reason
}

test('each certificate of a path must be in force, the anchor too', async () => {
  const middle = await root.issue({ name: 'middle', ca: true })
  const leaf = await middle.issue({ name: 'leaf' })
  assert.equal(judge(leaf, [middle]), 'path')
  assert.match(judge(await root.issue({ name: 'leaf', notBefore: NOW + 1000 })), /not valid yet/)
  assert.match(judge(await root.issue({ name: 'leaf', notAfter: NOW - 1000 })), /has expired/)
  for (const dates of [{ notBefore: NOW + 1000 }, { notAfter: NOW - 1000 }]) {
    const dead = await root.issue({ name: 'middle', ca: true, ...dates })
    assert.match(judge(await dead.issue({ name: 'leaf' }), [dead]), /no anchor/)
    const anchor = await createAuthority({ name: 'root', now: NOW, ...dates })
    assert.match(judge(await anchor.issue({ name: 'leaf' }), [], { anchors: [read(anchor)] }), /no anchor/)
  }
})

test('a signature with SHA-1 is none', async () => {
  const old = await createAuthority({ name: 'old', key: 'RSA-SHA-1', now: NOW })
  assert.match(judge(await old.issue({ name: 'leaf' }), [], { anchors: [read(old)] }), /algorithm/)
})

test('an authority whose key usage names no certificates issues none', async () => {
  const middle = await root.issue({ name: 'middle', ca: true, keyUsage: keyUsage.digitalSignature })
  assert.match(judge(await middle.issue({ name: 'leaf' }), [middle]), /no anchor/)
  const silent = await root.issue({ name: 'middle', ca: true, keyUsage: null })
  assert.equal(judge(await silent.issue({ name: 'leaf' }), [silent]), 'path')
})

test('the key of an issuer under another name is not the issuer', async () => {
  const middle = await root.issue({ name: 'middle', ca: true })
  const alias = await root.issue({ name: 'alias', ca: true, keyOf: middle })
  const leaf = await middle.issue({ name: 'leaf' })
  assert.match(judge(leaf, [alias]), /no anchor/)
  assert.equal(judge(leaf, [alias, middle]), 'path')
})

test('a path has six authorities at most between leaf and anchor', async () => {
  const chain: Issued[] = [root]
  for (const name of ['1', '2', '3', '4', '5', '6', '7']) {
    const above = chain.at(-1) ?? root
    chain.push(await above.issue({ name, ca: true }))
  }
  const [sixth = root, seventh = root] = chain.slice(6)
  assert.equal(judge(await sixth.issue({ name: 'leaf' }), chain.slice(1)), 'path')
  assert.match(judge(await seventh.issue({ name: 'leaf' }), chain.slice(1)), /no anchor/)
})

test('a tangle of certificates of one name ends', async () => {
  const right = await root.issue({ name: 'middle', ca: true })
  const leaf = await right.issue({ name: 'leaf' })
  const wrong = await Promise.all(Array.from({ length: 50 }, () => root.issue({ name: 'middle', ca: true })))
  assert.equal(judge(leaf, [...wrong.slice(0, 20), right]), 'path')
  assert.match(judge(leaf, [...wrong, right]), /no anchor/)
})
