import { createApp, defineComponent, h } from "vue";
import { useJob } from "tenure-tracker/vue";
import { createExportUsersJob } from "./jobs";

const ExportUsers = defineComponent(() => {
  const job = createExportUsersJob();
  const state = useJob(job);
  return () => [
    h("button", { onClick: () => job.start({ format: "csv" }) }, "Export"),
    state.value && h("span", state.value.progress_message ?? ""),
    state.value?.status === "completed" && h("p", "Export complete!"),
    state.value?.failed && h("p", { class: "error" }, state.value.last_error ?? ""),
  ];
});

const app = createApp(ExportUsers);
app.mount(document.body.appendChild(document.createElement("main")));
Object.assign(globalThis, { leave: () => app.unmount() });
