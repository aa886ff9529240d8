import type { Node } from '@plat/resources'
import fc from 'fast-check'

/** Entries of generated lists and maps at most. */
const FEW = 3

/** Texts at which readers differ: empty, blank, long, quoted, outside ASCII, names of members, halves of URLs. */
const ODD_TEXTS = [
  ...[
    '',
    ' ',
    '*',
    '**',
    '/',
    'a/b',
    'a/b/c',
    '.',
    '..',
    '-',
    'a\nb',
    'a\tb',
    '"',
    '\\',
    '\u0000',
    '\u2028',
    'é',
    '😀',
  ],
  ...[
    '__proto__',
    'constructor',
    'http:///x',
    'https://',
    'http://a b',
    'http://u:p@h',
    'http://h:99999',
    'http://[::1]/x',
  ],
  ...['http://h/x?y=z#f', 'https://h.example', '*.example.com', 'plat-', 'true', '0', '-1', '1e400', '$(X)'],
  ...['sha256:', `sha256:${'0'.repeat(64)}`, "args.x == 'y'", 'permit(principal, action, resource);'],
]
const TIMES = [
  ...[
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.1234567890123Z',
    '2026-12-31T23:59:59-23:59',
    '0000-01-01T00:00:00Z',
  ],
  ...['9999-12-31T23:59:59-23:59', '2026-01-01T24:00:00Z', '2026-01-01t00:00:00z', '2026-02-30T00:00:00Z'],
]
const QUANTITIES = [
  1,
  0,
  7,
  '0',
  '1',
  '5m',
  '1e3',
  '1E3',
  '9E',
  '1e30',
  '1Ki',
  '0.1u',
  '1.5',
  '.5',
  '1.',
  '+1',
  '-1',
  '1e-30',
]

/** Values of a schema, among them the longest, the shortest and the oddest. */
export function anyOf(node: Node): fc.Arbitrary<unknown> {
  if (node['x-kubernetes-int-or-string'] === true) return fc.constantFrom(...QUANTITIES)
  if (node.enum !== undefined) return fc.constantFrom(...node.enum)
  if (node.const !== undefined) return fc.constant(node.const)
  switch (node.type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return integerOf(node)
    case 'string':
      return textOf(node)
    case 'array':
      return fc.array(anyOf(node.items ?? {}), {
        minLength: node.minItems ?? 0,
        maxLength: Math.max(node.minItems ?? 0, Math.min(FEW, node.maxItems ?? FEW)),
      })
    case 'object':
      return objectOf(node)
    default:
      return fc.constant({})
  }
}

function integerOf({ minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Node) {
  return fc.oneof(
    fc.constantFrom(minimum, maximum),
    fc.integer({ min: Math.max(minimum, -5), max: Math.min(maximum, 100) }),
  )
}

function textOf({ pattern, format, minLength = 0, maxLength = 64 }: Node): fc.Arbitrary<string> {
  if (format === 'date-time') return fc.constantFrom(...TIMES)
  const fits = (text: string) =>
    text.length >= minLength && text.length <= maxLength && (pattern === undefined || new RegExp(pattern).test(text))
  const odd = [...ODD_TEXTS, 'x'.repeat(maxLength), 'x'.repeat(Math.max(0, maxLength - 8)).concat('.example')].filter(
    fits,
  )
  const plain =
    pattern === undefined ? fc.string({ minLength, maxLength: Math.min(maxLength, 12) }) : matching(pattern, fits)
  return odd.length === 0 ? plain : fc.oneof(fc.constantFrom(...odd), plain)
}

function matching(pattern: string, fits: (text: string) => boolean): fc.Arbitrary<string> {
  return fc.stringMatching(new RegExp(pattern)).filter(fits)
}

function objectOf(node: Node): fc.Arbitrary<unknown> {
  const { properties, required = [], additionalProperties, minProperties, maxProperties } = node
  if (properties === undefined) {
    if (typeof additionalProperties !== 'object') return fc.constant({})
    const key = fc.constantFrom(...ODD_TEXTS.filter((text) => text !== '__proto__'), 'a', 'b')
    return fc.dictionary(key, anyOf(additionalProperties), { maxKeys: Math.min(FEW, maxProperties ?? FEW) })
  }
  const members = Object.entries(properties)
  if (minProperties === 1 && maxProperties === 1)
    return fc.oneof(...members.map(([name, member]) => anyOf(member).map((value) => ({ [name]: value }))))
  const arbitraries = Object.fromEntries(members.map(([name, member]) => [name, anyOf(member)]))
  return fc.record(arbitraries, { requiredKeys: [...required] })
}
