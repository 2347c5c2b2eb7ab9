import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { useNewJob } from "tenure-tracker/react";
import { createExportUsersJob } from "./jobs";

function ExportUsers() {
  const [state, job] = useNewJob(() => createExportUsersJob());
  return (
    <>
      <button onClick={() => job.start({ format: "csv" })}>Export</button>
      {state && <span>{state.progress_message}</span>}
      {state?.status === "completed" && <p>Export complete!</p>}
      {state?.failed && <p className="error">{state.last_error}</p>}
    </>
  );
}

const root = createRoot(document.body.appendChild(document.createElement("main")));
root.render(<StrictMode><ExportUsers /></StrictMode>);
Object.assign(globalThis, { leave: () => root.unmount() });
