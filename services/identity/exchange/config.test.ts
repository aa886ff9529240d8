import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readExchangeConfig } from './config.ts'
import type { CredentialProvider } from './provider.ts'

const provider: CredentialProvider = {
  name: 'aws-sts',
  problems: (params) => ('roleArn' in params ? [] : ['roleArn: is missing']),
  leastSeconds: () => 0,
  issue: async () => ({ kind: 'failed', reason: 'never' }),
}

function read(file: unknown) {
  const bytes = Buffer.from(typeof file === 'string' ? file : JSON.stringify(file))
  return readExchangeConfig(bytes, 'x.json', [provider])
}

function problemsOf(file: unknown): string {
  try {
    read(file)
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const audience = (change: object) => ({ audiences: { a: change } })

test('an audience has the documented keys, and 300 s when it says no lifetime', () => {
  // Shows D1.exchangeConfig.audiences, D1.exchangeConfig.maxTTLSeconds, D1.exchangeConfig.maxTTLSeconds.default,
  // D1.exchangeConfig.allowedScopes, D1.exchangeConfig.allowedNamespaces, D1.exchangeConfig.provider,
  // D1.exchangeConfig.params.
  const full = {
    maxTTLSeconds: 60,
    allowedScopes: ['tools:a'],
    allowedNamespaces: ['team'],
    provider: 'aws-sts',
    params: { roleArn: 'arn' },
  }
  const audiences = read({ audiences: { full, least: {} } })
  assert.deepEqual(audiences.get('full'), {
    maxTTLSeconds: 60,
    allowedScopes: new Set(['tools:a']),
    allowedNamespaces: new Set(['team']),
    provider,
    params: { roleArn: 'arn' },
  })
  assert.deepEqual(audiences.get('least'), {
    maxTTLSeconds: 300,
    allowedScopes: new Set(),
    allowedNamespaces: new Set(),
    provider: null,
    params: {},
  })
})

test('every problem is reported with the path of its key', () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['{', /-exchange-config: x\.json: /],
    ['[]', /the file: must be an object/],
    ['{"audiences":{},"audiences":{}}', /-exchange-config: x\.json: /],
    [{}, /audiences: must be an object/],
    [{ audience: {} }, /unknown key "audience"; did you mean "audiences"\?/],
    [{ audiences: { '': {} } }, /a name is empty/],
    [{ audiences: { a: 1 } }, /audiences\["a"\]: must be an object/],
    [audience({ maxTtlSeconds: 1 }), /audiences\["a"\]: unknown key "maxTtlSeconds"; did you mean "maxTTLSeconds"\?/],
    [audience({ maxTTLSeconds: 0 }), /audiences\["a"\]\.maxTTLSeconds: must be a whole number above 0/],
    [audience({ maxTTLSeconds: '5m' }), /maxTTLSeconds: must be/],
    [audience({ maxTTLSeconds: 1.5 }), /maxTTLSeconds: must be/],
    [audience({ allowedScopes: 'tools:a' }), /allowedScopes: must be a list/],
    [audience({ allowedScopes: ['a b'] }), /allowedScopes: must be a list of texts without white space/],
    [audience({ allowedNamespaces: [1] }), /allowedNamespaces: must be a list/],
    [audience({ params: { roleArn: 'x' } }), /params: needs a provider/],
    [audience({ params: [] }), /params: must be an object/],
    [audience({ provider: 'aws-sts' }), /audiences\["a"\]\.params\.roleArn: is missing/],
  ]
  for (const [file, message] of cases) assert.match(problemsOf(file), message, JSON.stringify(file))
})

test('an unknown provider refuses, whether the contract names it or not', () => {
  assert.match(
    problemsOf(audience({ provider: 'gcp-sts' })),
    /provider "gcp-sts": needs -federation-key, which signs what clouds take/,
  )
  assert.match(
    problemsOf(audience({ provider: 'aws' })),
    /provider "aws": must be one of aws-sts, gcp-sts, azure-entra/,
  )
  assert.match(problemsOf(audience({ provider: '' })), /provider "": must be one of/)
})

test('several problems are reported together', () => {
  assert.equal(problemsOf({ audiences: { a: { maxTTLSeconds: 0 }, b: { x: 1 } } }).split('\n').length, 2)
})
