import { parseStrict } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json } from '../../../../test/fuzz/families.ts'
import { published } from './testing/classifiers.ts'
import { testGuard } from './testing/config.ts'
import { typeOf } from './types/types.ts'

/** Largest response of a guard, in bytes. */
const RESPONSE = 256 * 1024

const list = (n: number, element: string) => `[${`${element},`.repeat(n / (element.length + 1))}${element}]`
const members = (n: number) => `{${Array.from({ length: n / 14 }, (_, at) => `"m${at}":0.5`).join()}}`

const answers: Families = {
  ...json,
  scores: (n) => `{"results":[{"category_scores":${members(n)}}]}`,
  results: (n) => `{"results":${list(n, '{"score":0.5}')}}`,
  breakdown: (n) => `{"flagged":true,"breakdown":${list(n, '{"detected":true,"detector_type":"a"}')}}`,
  'long detectors': (n) => `{"flagged":true,"breakdown":[{"detected":true,"detector_type":"${'a/'.repeat(n / 2)}"}]}`,
  assessments: (n) => `{"action":"NONE","assessments":${list(n, '{"contentPolicy":{"filters":[{"type":"a"}]}}')}}`,
  filters: (n) => `{"action":"NONE","assessments":[{"contentPolicy":{"filters":${list(n, '{"type":"a"}')}}}]}`,
  'members of a list': (n) => list(n, members(100)),
}

const rows: readonly Row[] = published.flatMap(({ type }) =>
  ['', 'a'].map(
    (category): Row => ({
      parser: 'answers of guards',
      part: category === '' ? type : `category of ${type}`,
      limit: RESPONSE,
      families: answers,
      run: (input) =>
        typeOf(type, {}).score(parseStrict(Buffer.from(input)), {
          ...testGuard,
          scorePath: 'results.0.score',
          category,
        }),
    }),
  ),
)

export const target = costTarget('cost/gateway answers of guards', rows)
