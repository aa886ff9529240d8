import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CredentialProvider } from '../provider.ts'
import { awsSts } from './aws-sts.ts'
import { azureEntra } from './azure-entra.ts'
import type { CloudParts } from './cloud.ts'
import { gcpSts } from './gcp-sts.ts'

/** Not used while `params` are checked. */
const parts: CloudParts = {
  get federation(): never {
    return assert.fail('the federation key is not needed')
  },
  get dialer(): never {
    return assert.fail('no cloud is called')
  },
  get clock(): never {
    return assert.fail('no clock is needed')
  },
}

type Params = Readonly<Record<string, unknown>>

const POOL = '//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/p/providers/x'

const GOOD: readonly (readonly [CredentialProvider, Params])[] = [
  [awsSts(parts), { roleArn: 'arn:aws-cn:iam::123456789012:role/path/reports', region: 'cn-north-1' }],
  [gcpSts(parts), { workloadIdentityProvider: POOL, serviceAccount: 'a@p.iam.gserviceaccount.com' }],
  [azureEntra(parts), { tenant: 'contoso.example', clientId: 'app-1', scope: 'https://vault.azure.net/.default' }],
]

test('params are checked before the broker starts, each by its key', () => {
  const [aws, gcp, azure] = GOOD.map(([provider]) => provider)
  for (const [provider, params] of GOOD) {
    assert.deepEqual(provider.problems(params), [])
    const problems = (change: object) => provider.problems({ ...params, ...change }).join('\n')
    assert.equal(problems({ subject: 'session', audience: 'x', endpoint: 'http://127.0.0.1:1/base' }), '')
    assert.match(problems({ subject: 'user' }), /^subject: must be agent or session$/)
    assert.match(problems({ audience: ['x'] }), /^audience: must be/)
    assert.match(problems({ endpont: 'https://x' }), /^endpont: unknown key; did you mean "endpoint"\?$/)
    for (const endpoint of ['http://x', 'ftp://x', 'https://u:p@x', 'https://x/?a', 'https://x/#a', 'x', '', 1]) {
      assert.match(problems({ endpoint }), /^endpoint: must be an https URL/, String(endpoint))
    }
  }
  assert.deepEqual(aws?.problems({}), ['roleArn: is missing'])
  assert.deepEqual(gcp?.problems({}), ['workloadIdentityProvider: is missing'])
  assert.deepEqual(azure?.problems({}), ['tenant: is missing', 'clientId: is missing', 'scope: is missing'])
  assert.match(aws?.problems({ roleArn: 'arn:aws:iam::1:role/x' }).join() ?? '', /^roleArn: must be the ARN/)
  assert.match(aws?.problems({ ...GOOD[0]?.[1], region: 'evil.example/' }).join() ?? '', /^region: must be/)
  assert.match(azure?.problems({ ...GOOD[2]?.[1], tenant: '../x' }).join() ?? '', /^tenant: must be/)
  assert.match(azure?.problems({ ...GOOD[2]?.[1], scope: 'User.Read' }).join() ?? '', /^scope: must be/)
})

test('a provider reports the shortest life of its credentials', () => {
  assert.deepEqual(
    GOOD.map(([provider, params]) => provider.leastSeconds(params)),
    [900, 0, 3600],
  )
  assert.equal(gcpSts(parts).leastSeconds({ workloadIdentityProvider: POOL }), 3600)
})
