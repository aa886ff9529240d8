import { type Body, type Denial, isDenial } from '../../../call/index.ts'
import { BatchBody } from '../batches/body.ts'
import { chat } from '../dialects/chat.ts'
import { ModelBody, readModelBody, withModel } from '../request.ts'
import { UploadBody } from '../uploads/body.ts'

/** Where the texts of this plane's requests stand: everywhere but in the name of the model, which routes and policies go by. */
export const modelTexts = {
  where: { except: [['model']] },
  rewritten(body: Body, bytes: Uint8Array): Body | Denial {
    if (!(body instanceof ModelBody)) return readModelBody(bytes, chat)
    if (body instanceof UploadBody || body instanceof BatchBody) return body.rewritten(bytes)
    const read = readModelBody(bytes, body.dialect)
    return isDenial(read) || body.dialect.modelInPath !== true ? read : withModel(read, body.request.model)
  },
  repeated: () => [],
}
