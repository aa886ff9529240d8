import type { Ids } from '@plat/core'
import type { RunNested } from '../../../pipeline/index.ts'
import { FileFetcher } from './fetch.ts'
import { BatchJudge, type JudgeOptions, type JudgingPlane } from './judge.ts'
import type { BatchReader } from './read.ts'

export { type BatchStore, createBatchReview } from './review.ts'
export type { BatchReader, JudgeOptions, JudgingPlane }

/** Returns what reads the requests for batches of a plane, with the runner that runs it. */
export function createBatchReader(
  plane: JudgingPlane,
  options: JudgeOptions & { readonly run: RunNested; readonly ids: Pick<Ids, 'uuid'> },
): BatchReader {
  const judge = new BatchJudge(plane, options)
  const fetcher = new FileFetcher(plane, options)
  return { judge, fetchFile: (unread, route, id) => fetcher.fetch(unread, route, id) }
}
