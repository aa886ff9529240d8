import { fuzzTarget } from '../fuzz/target.ts'
import { acceptsRenderedFiles, acceptsRevocations } from './rendered-files.ts'

/** One object that a cluster accepts and a gateway does not would keep the file of all namespaces from being read. */
export const target = fuzzTarget('operator: files that the gateway reads', {
  'the gateway accepts each rendered file': acceptsRenderedFiles,
  'the gateway accepts rendered revocations': acceptsRevocations,
})
