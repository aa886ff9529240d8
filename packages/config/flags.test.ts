import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FlagTable, parseFlags, settingsOf, usage } from './flags.ts'

const table = {
  listen: { type: 'string', default: ':8081', help: 'Address to serve on.', group: 'Listener' },
  level: { type: 'string', oneOf: ['info', 'debug'], default: 'info', help: 'Least level.' },
  'max-ttl': { type: 'duration', default: 3_600_000, min: 1000, max: 86_400_000, help: 'Longest lifetime.' },
  depth: { type: 'int', default: 5, min: 0, help: 'Deepest chain.' },
  checks: { type: 'list', help: 'Proof checks.' },
  version: { type: 'bool', help: 'Print the version and exit.' },
} as const satisfies FlagTable

function values(...argv: string[]) {
  const parsed = parseFlags(table, argv, 'plat-test')
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.message)
  return parsed
}

function refusal(...argv: string[]): string {
  const parsed = parseFlags(table, argv, 'plat-test')
  assert.ok(!parsed.ok)
  assert.ok(parsed.usage.startsWith('Usage: plat-test [flags]\n'))
  return parsed.message
}

describe('flags', () => {
  test('without arguments every flag has its default or the empty value of its type', () => {
    const parsed = values()
    assert.deepEqual(parsed.values, {
      listen: ':8081',
      level: 'info',
      'max-ttl': 3_600_000,
      depth: 5,
      checks: [],
      version: false,
    })
    assert.equal(parsed.given.size, 0)
  })

  test('one dash, two dashes, a space and an equals sign are equivalent', () => {
    for (const argv of [['-listen', ':1'], ['--listen', ':1'], ['-listen=:1'], ['--listen=:1']]) {
      const parsed = values(...argv)
      assert.equal(parsed.values.listen, ':1')
      assert.deepEqual([...parsed.given], ['listen'])
    }
  })

  test('values may be empty, hold an equals sign or begin with a dash', () => {
    assert.equal(values('-listen=').values.listen, '')
    assert.equal(values('-listen=a=b').values.listen, 'a=b')
    assert.equal(values('-listen', '-x').values.listen, '-x')
  })

  test('a bool never takes the next argument', () => {
    assert.equal(values('-version').values.version, true)
    assert.equal(values('-version=false').values.version, false)
    assert.equal(refusal('-version', 'false'), 'unexpected argument "false"')
    assert.equal(refusal('-version=maybe'), 'flag -version must be true or false, got "maybe"')
    assert.equal(refusal('-version=toString'), 'flag -version must be true or false, got "toString"')
  })

  test('durations are Go style, in milliseconds, within their range', () => {
    assert.equal(values('-max-ttl', '1h30m').values['max-ttl'], 5_400_000)
    assert.match(refusal('-max-ttl', '90'), /^flag -max-ttl must be a duration such as .*, got "90"$/)
    assert.equal(refusal('-max-ttl', '48h'), 'flag -max-ttl must be from 1s to 24h, got 48h')
  })

  test('integers are whole numbers within their range', () => {
    assert.equal(values('-depth', '0').values.depth, 0)
    assert.equal(refusal('-depth', '1.5'), 'flag -depth must be an integer, got "1.5"')
    assert.equal(refusal('-depth', '0x10'), 'flag -depth must be an integer, got "0x10"')
    assert.equal(refusal('-depth', '9007199254740993'), 'flag -depth must be an integer, got "9007199254740993"')
    assert.equal(refusal('-depth=-1'), 'flag -depth must be at least 0, got -1')
  })

  test('a list is split at commas and grows when the flag is repeated; any other flag keeps the last value', () => {
    assert.deepEqual(values('-checks', 'a, b,,c', '-checks=d').values.checks, ['a', 'b', 'c', 'd'])
    assert.equal(values('-depth', '1', '-depth', '2').values.depth, 2)
  })

  test('a closed set names its members', () => {
    assert.equal(refusal('-level', 'loud'), 'flag -level must be one of info, debug, got "loud"')
  })

  test('unknown flags, missing values and stray arguments are refused with a suggestion', () => {
    assert.equal(refusal('-lisen', ':1'), 'unknown flag -lisen; did you mean -listen?')
    assert.equal(refusal('-constructor'), 'unknown flag -constructor')
    assert.equal(refusal('-listen'), 'flag -listen needs a value')
    for (const stray of ['file', '-', '--', '---listen', '-=x']) {
      assert.equal(refusal(stray), `unexpected argument ${JSON.stringify(stray)}`)
    }
  })

  test('requesting help is not an error', () => {
    for (const flag of ['-h', '-help', '--help']) {
      const parsed = parseFlags(table, [flag])
      assert.ok(!parsed.ok && parsed.help && parsed.message === '')
    }
    assert.ok(!parseFlags({ h: { type: 'bool', help: 'x' } }, ['-help']).ok)
    assert.ok(parseFlags({ h: { type: 'bool', help: 'x' } }, ['-h']).ok)
  })

  test('the usage text is grouped, aligned and shows types, choices and defaults', () => {
    assert.equal(
      usage(table, 'plat-test'),
      `Usage: plat-test [flags]

Listener:
  -listen string     Address to serve on. (default :8081)

Flags:
  -level string      Least level. One of: info, debug. (default info)
  -max-ttl duration  Longest lifetime. (default 1h)
  -depth int         Deepest chain. (default 5)
  -checks list       Proof checks.
  -version           Print the version and exit.
`,
    )
  })
})

test('settings have the values of flags by camel-case names, and defaults for those that are absent', () => {
  const urls = {
    'gateway-url': { type: 'string', url: true, help: 'URL of the gateway.' },
  } as const satisfies FlagTable
  const { values: given } = values('-max-ttl', '90s', '-checks', 'spiffe,tee')
  assert.deepEqual(settingsOf({ ...table, ...urls }, { ...given, 'gateway-url': 'https://plat.example/' }), {
    listen: ':8081',
    level: 'info',
    maxTtlMs: 90_000,
    depth: 5,
    checks: ['spiffe', 'tee'],
    version: false,
    gatewayUrl: 'https://plat.example',
  })
  assert.deepEqual(settingsOf(urls), { gatewayUrl: '' })
  const { 'max-ttl': maxTtl } = table
  assert.deepEqual(
    settingsOf({ 'max-ttl': maxTtl }, given),
    { maxTtlMs: 90_000 },
    'values of other tables are left out',
  )
})
