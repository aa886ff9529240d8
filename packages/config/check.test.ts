import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import Type from 'typebox'
import { Check } from 'typebox/value'
import type { ConfigBlock, Rule } from './block.ts'
import { checkConfig } from './check.ts'
import { joinSchema } from './node.ts'
import { formatProblem, isHttpUrl, isListenAddress, memberPath, parentPath } from './words.ts'

const inner = Type.Object({
  name: Type.String({ pattern: '^[a-z]+$' }),
  size: Type.Integer({ minimum: 1, maximum: 9, default: 3 }),
  note: Type.Optional(Type.String({ maxLength: 5 })),
})

const top = {
  path: '',
  feature: 'top',
  schema: Type.Object({
    mode: Type.Enum(['a', 'b'], { default: 'a' }),
    ratio: Type.Number({ exclusiveMinimum: 0, maximum: 1, default: 1 }),
    items: Type.Array(inner, { default: [], maxItems: 2 }),
    names: Type.Record(Type.String({ pattern: '^[a-z ]+$' }), Type.Boolean(), { default: {} }),
  }),
} satisfies ConfigBlock

const feature = {
  path: 'deep.feature',
  feature: 'feature',
  schema: Type.Object({ enabled: Type.Boolean({ default: false }), depth: Type.Integer({ default: 2, minimum: 0 }) }),
} satisfies ConfigBlock

/** The block of the feature when both members are absent. */
const deep = { feature: { enabled: false, depth: 2 } }

function check(value: unknown, blocks: readonly ConfigBlock[] = [top, feature]) {
  const { config, problems } = checkConfig(JSON.stringify(value), blocks)
  return { config, lines: problems.map(formatProblem) }
}

describe('the walk', () => {
  test('defaults are filled in at every depth, optional keys stay absent', () => {
    assert.deepEqual(check({ items: [{ name: 'x' }] }), {
      config: { mode: 'a', ratio: 1, items: [{ name: 'x', size: 3 }], names: {}, deep },
      lines: [],
    })
  })

  test('paths contain list positions and quote keys that are not plain words', () => {
    const { lines } = check({
      items: [{ name: 'x' }, { name: 'X', size: 0, note: 'too long' }],
      names: { 'a b': 1, A: true },
    })
    assert.deepEqual(lines, [
      'items[1].name: must match ^[a-z]+$, got "X"',
      'items[1].size: must be from 1 to 9, got 0',
      'items[1].note: must have at most 5 characters, has 8',
      'names["a b"]: must be true or false, got 1',
      'names.A: the name must match ^[a-z ]+$',
    ])
  })

  test('problems are in the order of the file, whichever part reports them', () => {
    const rule = (path: string) => () => [{ path, message: 'by a rule', severity: 'error' as const }]
    const ruled = { ...top, rules: [rule('ratio'), rule('items[0].size'), rule('mode')] }
    const { lines } = check({ mode: 'a', wrong: 1, items: [{ size: 3 }], ratio: 1 }, [ruled, feature])
    assert.deepEqual(lines, [
      'mode: by a rule',
      'wrong: unknown key',
      'items[0].size: by a rule',
      'items[0].name: is required',
      'ratio: by a rule',
    ])
  })

  test('a rule is not applied to a value that is invalid itself', () => {
    const ruled = { ...top, rules: [() => [{ path: 'ratio', message: 'by a rule', severity: 'error' as const }]] }
    assert.deepEqual(check({ ratio: 'x' }, [ruled]).lines, ['ratio: must be a number, got "x"'])
  })

  test('rules receive their own block and the whole file, both with defaults', () => {
    const seen: unknown[] = []
    const look: Rule = (block, file) => {
      seen.push(block.depth, file.mode)
      return []
    }
    const ruled: ConfigBlock = { ...feature, rules: [look] }
    check({ deep: { feature: {} } }, [top, ruled])
    assert.deepEqual(seen, [2, 'a'])
  })

  test('an invalid value is replaced by its default, so that rules see well-typed blocks', () => {
    const filled = { mode: 'a', ratio: 1, items: [], names: {}, deep }
    assert.deepEqual(check({ items: 'x', ratio: 5 }).config, filled)
  })

  test('a misspelt key is read as the intended one, unless that one exists or the caller disables it', () => {
    assert.equal(check({ mod: 'b' }).config.mode, 'b')
    assert.equal(check({ mod: 'b', mode: 'a' }).config.mode, 'a')
    const strict = checkConfig('{"items": [{"nam": "x"}]}', [top], { readMisspelt: false })
    assert.deepEqual(strict.problems.map(formatProblem), [
      'items[0].nam: unknown key; did you mean items[0].name?',
      'items[0].name: is required',
    ])
  })
})

test('two tables that define one key are refused', () => {
  assert.throws(() => joinSchema([top, top]), /two tables describe the key mode/)
})

describe('files', () => {
  const files = {
    path: '',
    feature: 'files',
    schema: Type.Object({
      must: Type.String({ default: '', file: 'error' }),
      should: Type.Array(Type.String({ file: 'warning' }), { default: [] }),
      closed: Type.String({ default: '', file: 'fails closed' }),
    }),
  } satisfies ConfigBlock

  test('a missing file is an error, a warning, or a warning that names the denied feature', () => {
    const text = JSON.stringify({ must: '/no', should: ['/yes', '/no'], closed: '/no' })
    const { problems } = checkConfig(text, [files], { exists: (path) => path === '/yes' })
    assert.deepEqual(problems.map(formatProblem), [
      'must: no readable file "/no"',
      'warning: should[1]: no readable file "/no"',
      'warning: closed: no readable file "/no" yet; every call is denied until there is one',
    ])
    assert.ok(problems.every((problem) => problem.kind === 'missing_file'))
  })

  test('an empty path names no file', () => {
    assert.deepEqual(checkConfig('{"must": ""}', [files], { exists: () => false }).problems, [])
  })
})

test('the alternative of the value’s type is read, with its defaults; another type is reported', () => {
  const person = Type.Union([Type.String({ minLength: 1 }), inner])
  const schema = Type.Object({ people: Type.Record(Type.String(), person, { default: {} }) })
  const block = { path: '', feature: 'top', schema } satisfies ConfigBlock
  assert.deepEqual(check({ people: { a: 'ada', b: { name: 'bob' } } }, [block]), {
    config: { people: { a: 'ada', b: { name: 'bob', size: 3 } } },
    lines: [],
  })
  assert.deepEqual(check({ people: { a: '', b: { sise: 3 }, c: 5 } }, [block]).lines, [
    'people.a: must not be empty',
    'people.b.sise: unknown key; did you mean people.b.size?',
    'people.b.name: is required',
    'people.c: must be a string or an object, got 5',
  ])
})

test('for any file the walk and the schema agree on what is well-formed', () => {
  const closed = { additionalProperties: false }
  const item = Type.Object(
    { name: inner.properties.name, size: Type.Optional(inner.properties.size), note: inner.properties.note },
    closed,
  )
  const { mode, ratio, names } = top.schema.properties
  const oracle = Type.Object(
    {
      mode: Type.Optional(mode),
      ratio: Type.Optional(ratio),
      items: Type.Optional(Type.Array(item, { maxItems: 2 })),
      names: Type.Optional(Type.Record(Type.String({ pattern: '^[a-z ]+$' }), Type.Boolean(), closed)),
    },
    { ...closed, names },
  )
  const scalar = fc.oneof(
    fc.constantFrom('a', 'b', 'x', '', 'too long', true, null, 0, 1, 0.5, -1, 9, 10, 1e300),
    fc.string(),
  )
  const word = fc.constantFrom('a', 'b', 'x')
  const thing = fc.oneof(
    fc.record({ name: word, size: fc.integer({ min: 1, max: 9 }), note: word }, { requiredKeys: ['name'] }),
    fc.record({ name: scalar, size: scalar, note: scalar, more: scalar }, { requiredKeys: [] }),
  )
  const some = <T>(good: fc.Arbitrary<T>) => fc.oneof({ weight: 9, arbitrary: good }, { weight: 1, arbitrary: scalar })
  const file = fc.record(
    {
      mode: some(word),
      ratio: some(fc.double({ min: -0.2, max: 1.2, noNaN: true })),
      items: some(fc.array(some(thing), { maxLength: 3 })),
      names: some(fc.dictionary(fc.constantFrom('a b', 'c', 'D'), some(fc.boolean()))),
    },
    { requiredKeys: [] },
  )
  let wellFormed = 0
  fc.assert(
    fc.property(file, (value) => {
      const parsed: unknown = JSON.parse(JSON.stringify(value))
      const { problems } = checkConfig(JSON.stringify(value), [top])
      assert.equal(problems.length === 0, Check(oracle, parsed), problems.map(formatProblem).join('\n'))
      if (problems.length === 0) {
        wellFormed++
        assert.ok(Check(top.schema, checkConfig(JSON.stringify(value), [top]).config))
      }
    }),
    { numRuns: 500 },
  )
  assert.ok(wellFormed > 5, `only ${wellFormed} of the files were well-formed`)
})

test('no text makes the check throw', () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void checkConfig(text, [top, feature])))
})

test('a path and a key make a path whose parent is the first', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string(), fc.constantFrom('a', 'b_1', 'x"]', '\\"]')), { minLength: 1 }),
      (keys) => {
        const path = keys.reduce(memberPath, '')
        assert.equal(parentPath(path), keys.slice(0, -1).reduce(memberPath, ''))
        assert.equal(parentPath(`${path}[3]`), path)
      },
    ),
  )
})

test('listen addresses and URLs are distinguished from similar text', () => {
  for (const good of [':0', ':8080', '127.0.0.1:65535', '[::1]:80', 'localhost:1', 'a.example:1']) {
    assert.ok(isListenAddress(good), good)
  }
  for (const bad of ['8080', ':', ':65536', '::1:80', 'a b:1', 'host:1x', '[::1]', ':-1', 'http://a:1']) {
    assert.ok(!isListenAddress(bad), bad)
  }
  for (const good of ['http://a', 'HTTPS://a:1/x?y', 'http://[::1]:8080/']) assert.ok(isHttpUrl(good), good)
  for (const bad of ['http:a', 'http://', 'http:///x', 'ftp://a', '//a', 'a', 'http://a:x', 'http:// a']) {
    assert.ok(!isHttpUrl(bad), bad)
  }
})
