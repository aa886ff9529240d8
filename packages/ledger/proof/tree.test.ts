import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { inclusionPath, nodeCount, placesOfPath, rootAt, rootOfPath, treeAt } from './inclusion.ts'
import { leafHash, MerkleTree } from './tree.ts'
import { TreeFile } from './tree-file.ts'

const LINES = Array.from({ length: 70 }, (_, index) => Buffer.from(`line ${index}`))
const LEAVES = LINES.map(leafHash)
const sha256 = (...parts: Uint8Array[]) => hash('sha256', Buffer.concat(parts), 'buffer')

/** The definitions of RFC 6962, section 2.1, verbatim. */
function mth(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0] ?? Buffer.alloc(0)
  const left = half(leaves.length)
  return sha256(Buffer.of(1), mth(leaves.slice(0, left)), mth(leaves.slice(left)))
}

function path(index: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 1) return []
  const left = half(leaves.length)
  const [below, above] = [leaves.slice(0, left), leaves.slice(left)]
  return index < left ? [...path(index, below), mth(above)] : [...path(index - left, above), mth(below)]
}

function half(count: number): number {
  let left = 1
  while (left * 2 < count) left *= 2
  return left
}

/** All nodes of a tree over `LEAVES`. */
function nodes(): Buffer[] {
  const made: Buffer[] = []
  const tree = new MerkleTree(undefined, (node) => made.push(node))
  for (const leaf of LEAVES) tree.add(leaf)
  return made
}

const made = nodes()
const node = (place: number) => made[place] ?? assert.fail(`no node ${place}`)

test('roots and paths of every size and leaf equal those of RFC 6962, and verify', () => {
  for (let size = 1; size <= LEAVES.length; size++) {
    const leaves = LEAVES.slice(0, size)
    const root = mth(leaves).toString('hex')
    assert.equal(rootAt(node, size), root)
    for (let index = 0; index < size; index++) {
      const found = inclusionPath(node, index, size)
      assert.deepEqual(found, path(index, leaves))
      assert.equal(rootOfPath(LEAVES[index] ?? Buffer.alloc(0), index, size, found), root)
    }
  }
  assert.equal(nodeCount(LEAVES.length), made.length)
})

test('a modified leaf, index, size or path gives no root or another one', () => {
  const size = 53
  const root = rootAt(node, size)
  const change = fc.record({
    index: fc.nat(size - 1),
    other: fc.nat(size + 3),
    leaf: fc.nat(LEAVES.length - 1),
    step: fc.nat(),
    byte: fc.nat(31),
  })
  fc.assert(
    fc.property(change, ({ index, other, leaf, step, byte }) => {
      const good = inclusionPath(node, index, size)
      const at = LEAVES[index] ?? Buffer.alloc(0)
      const bent = good.map((hash, height) => (height === step % good.length ? flipped(hash, byte) : hash))
      assert.notEqual(rootOfPath(at, index, size, bent), root)
      assert.notEqual(rootOfPath(at, index, size, good.slice(1)), root)
      assert.notEqual(rootOfPath(at, index, size, [...good, at]), root)
      if (other !== index) assert.notEqual(rootOfPath(at, other, size, good), root)
      if (leaf !== index) assert.notEqual(rootOfPath(LEAVES[leaf] ?? at, index, size, good), root)
    }),
  )
})

function flipped(hash: Buffer, byte: number): Buffer {
  const changed = Buffer.from(hash)
  changed[byte] = (changed[byte] ?? 0) ^ 1
  return changed
}

test('the nodes of a path are known before the leaves arrive', () => {
  for (const [index, size] of [
    [0, 1],
    [0, 70],
    [41, 64],
    [69, 70],
  ] as const) {
    const read: number[] = []
    inclusionPath((place) => (read.push(place) > 0 ? node(place) : assert.fail()), index, size)
    assert.deepEqual([...placesOfPath(index, size)], read)
  }
})

test('a tree on file resumes from any size with a known root, and from zero when the file does not match', () => {
  const dir = mkdtempSync(join(tmpdir(), 'plat-'))
  const file = join(dir, 'tree')
  const grown = (from: number, root: string) => {
    const tree = new TreeFile(file)
    const resumed = tree.resume(from, root) ? from : 0
    if (resumed === 0) tree.restart({ size: 0, subtrees: [] })
    for (const line of LINES.slice(resumed)) tree.addLine(line)
    tree.sync()
    assert.equal(tree.root(), rootAt(node, LEAVES.length))
    assert.deepEqual(inclusionPath(tree.node, 3, 61), inclusionPath(node, 3, 61))
    tree.close()
    return resumed
  }
  assert.equal(grown(0, ''), 0)
  assert.equal(grown(33, rootAt(node, 33)), 33)
  assert.equal(grown(33, rootAt(node, 34)), 0)
  // A crash may leave fewer nodes than written, and half of one.
  truncateSync(file, nodeCount(40) * 32 + 7)
  assert.equal(grown(33, rootAt(node, 33)), 33)
  truncateSync(file, 100)
  assert.equal(grown(33, rootAt(node, 33)), 0)
  rmSync(dir, { recursive: true })
})

test('a tree resumes from its state', () => {
  const tree = new MerkleTree(treeAt(node, 37))
  for (const leaf of LEAVES.slice(37)) tree.add(leaf)
  assert.equal(tree.root(), mth(LEAVES).toString('hex'))
})

test('a tree on file that begins with full subtrees proves every leaf after them', () => {
  for (const from of [1, 6, 32, 37]) {
    const dir = mkdtempSync(join(tmpdir(), 'plat-'))
    const tree = new TreeFile(join(dir, 'tree'))
    tree.restart(treeAt(node, from))
    for (const line of LINES.slice(from)) tree.addLine(line)
    tree.sync()
    assert.equal(tree.root(), rootAt(node, LEAVES.length))
    for (let index = from; index < LEAVES.length; index++) {
      assert.deepEqual(inclusionPath(tree.node, index, LEAVES.length), inclusionPath(node, index, LEAVES.length))
    }
    tree.close()
    rmSync(dir, { recursive: true })
  }
})
