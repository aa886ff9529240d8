import { document1 } from './document1.ts'
import { document2 } from './document2.ts'
import { document3 } from './document3.ts'
import { type Requirement, rowsOf } from './row.ts'

/** Every promise of the three documents. A test says which it shows: `// Shows D1.mint.ttlSeconds.` inside its body. */
export const requirements: readonly Requirement[] = [
  ...rowsOf('D1', document1),
  ...rowsOf('D2', document2),
  ...rowsOf('D3', document3),
]
